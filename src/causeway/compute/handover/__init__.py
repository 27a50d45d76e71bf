"""Moves a guest from host to host. `resize` and `snapshot_resize` are the RPC endpoints of moves inside a cell and between
cells, `actions` what both do; `disk_transfer` and `disk_fetch` bring the disks. `dry_run` asks before, `verify` looks after.
"""
