"""Hypervisors: the driver interface, a simulated driver for scale and tests, and libvirt."""
