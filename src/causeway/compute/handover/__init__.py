"""Moves a guest from host to host. `resize` and `snapshot_resize` are the RPC endpoints of moves inside a cell and between
cells, `actions` has what both do; `disk_transfer` and `disk_fetch` transfer the disks. `dry_run` checks a move before it begins,
`verify` a copy after it.
"""
