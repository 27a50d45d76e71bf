"""`causeway.sagas`."""
