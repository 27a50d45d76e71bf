"""`causeway.clients`."""
