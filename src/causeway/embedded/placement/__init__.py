"""The real Placement service in the process of an embedded cloud."""
