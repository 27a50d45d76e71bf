"""Real guests move to another cell."""
