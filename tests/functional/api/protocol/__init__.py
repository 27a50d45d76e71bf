"""What all requests have in common: versions, documents, identity, what was removed or is not there."""
