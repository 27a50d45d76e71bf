"""Shelve, offload and unshelve."""
