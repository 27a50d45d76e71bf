"""`causeway.virt`."""
