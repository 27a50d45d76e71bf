"""What a host is and has, as libvirt and the operating system report it."""
