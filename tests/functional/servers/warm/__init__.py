"""Warm moves: disks are copied while the guest runs."""
