"""The conductor: drives all work on servers, and records what computes report."""
