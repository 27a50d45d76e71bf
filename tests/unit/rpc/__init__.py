"""`causeway.rpc`."""
