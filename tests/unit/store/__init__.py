"""`causeway.store`."""
