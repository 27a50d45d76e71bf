"""`causeway.docs`."""
