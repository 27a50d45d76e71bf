"""Volumes of servers: attachments, swaps, snapshots, servers that boot from a volume."""
