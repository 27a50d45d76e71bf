"""Ports that need a device of the host (SR-IOV)."""
