"""`causeway.client`."""
