"""`causeway.embedded`."""
