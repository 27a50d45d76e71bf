"""What consumers of notifications, metrics and request ids get."""
