"""Moves a guest from host to host. `resize` is the RPC endpoint of resizes and cold migrations, and `actions` has what other
moves share with them; `disk_transfer` and `disk_fetch` transfer the disks. `dry_run` checks a move before it begins, and `verify`
checks one copy before the other is destroyed.
"""
