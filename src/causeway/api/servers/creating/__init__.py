"""``POST /servers``: what may be asked for, and what becomes of it: devices, networks, disks."""
