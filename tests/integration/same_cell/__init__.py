"""Real guests move inside a cell."""
