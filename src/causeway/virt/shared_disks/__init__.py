"""Disks in a store that several hosts reach: a Ceph pool, a shared folder.

Between such hosts a server moves without a byte of its disks: they stay where they are and get another owner.

- `store`: what is asked of a store, whatever it is
- `ownership`: whose a disk is, and what each act of a move does to it. Read this first
- `folder_store`: a store that is a folder
"""
