"""A cloud of several releases: old hosts and what an earlier release began."""
