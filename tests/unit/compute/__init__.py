"""`causeway.compute`."""
