"""Compute hosts: whether they are up, what they have to clean up, how they are closed and removed.

- `liveness`: whether a host is up, down or fenced. `cleanups`, `whereabouts`: what a dead host must clean up when it is back.
- `disabling`: opens and closes hosts to new servers. `host_removal`, `cell_removal`: removes a host, or a cell with its hosts.
- `adoption`: how far the hosts of a cloud are on their way from Nova.
- `groups`: whether a server may go to its host, by its server group.
"""
