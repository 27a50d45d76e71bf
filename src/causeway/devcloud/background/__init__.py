"""Background work, on its own threads."""
