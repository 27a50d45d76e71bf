"""`causeway.notify`."""
