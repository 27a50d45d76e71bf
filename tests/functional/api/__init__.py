"""Resources of the API by themselves: databases are real, services around are recorders."""
