"""Servers are built and deleted: nothing is left of them, and deletes may be put off."""
