"""`causeway.audit`."""
