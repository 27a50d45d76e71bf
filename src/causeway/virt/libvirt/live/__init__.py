"""Live migration: what both hosts must know and have, the migration itself, and what is true of a guest on its way."""
