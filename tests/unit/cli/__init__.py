"""`causeway.cli`."""
