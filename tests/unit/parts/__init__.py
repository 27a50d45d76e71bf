"""`causeway.parts`."""
