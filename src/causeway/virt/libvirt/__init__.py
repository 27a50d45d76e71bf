"""The libvirt driver: QEMU/KVM guests. `causeway.virt.libvirt.driver.LibvirtDriver` is its entrance."""
