"""Images from tenants, and disks of hosts, with real guests: see the table of the folder above. Needs root, QEMU and libvirt."""
