"""`causeway.model`."""
