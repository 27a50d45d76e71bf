"""`causeway.drains`."""
