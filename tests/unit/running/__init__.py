"""`causeway.running`."""
