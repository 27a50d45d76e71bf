"""`causeway.moves`."""
