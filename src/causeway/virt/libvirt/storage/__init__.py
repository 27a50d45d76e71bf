"""The disks of guests: local files, volumes, copies of them while the guest runs, and saved memory beside them."""
