"""Moves a guest from host to host. `resize` and `snapshot_resize` are the RPC endpoints of moves inside a cell and between
cells, and `actions` has the code that both share; `disk_transfer` and `disk_fetch` transfer the disks. `dry_run` checks a move
before it begins, and `verify` checks one copy before the other is destroyed.
"""
