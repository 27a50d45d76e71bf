"""`causeway.requests`."""
