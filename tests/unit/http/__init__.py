"""`causeway.http`."""
