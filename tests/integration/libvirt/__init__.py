"""The libvirt driver on real guests."""
