"""Disks of guests in Ceph: a pool that several hosts reach.

- `store`: what is asked of the pool. Read this first
- `images`: base images that disks stand on, and disks that come from files or become files
- `client`: asks a worker, and has patience only for so long
- `worker`: a process that Ceph may stop or kill, with Ceph's `bindings` or, where there are none, its `programs`
- `protocol`: what is said between the two
"""
