"""Hosts that keep disks in one store: moves, dead hosts and the audit, seen in the store itself."""
