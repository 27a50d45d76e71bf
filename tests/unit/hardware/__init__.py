"""`causeway.hardware`."""
