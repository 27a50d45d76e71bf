"""`causeway.scheduler`."""
