"""`causeway.metrics`."""
