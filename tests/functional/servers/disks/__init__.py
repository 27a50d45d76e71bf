"""Disks and images of servers that move: nothing is lost, and no last copy is destroyed."""
