"""`causeway.conductor`."""
