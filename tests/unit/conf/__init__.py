"""`causeway.conf`."""
