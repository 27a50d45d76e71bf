"""`causeway.api`."""
