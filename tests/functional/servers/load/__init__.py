"""What operations cost, many of them at once, and slow clients."""
