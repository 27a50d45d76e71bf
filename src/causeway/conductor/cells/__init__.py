"""The conductor of a cell: the only one that reaches its database, for computes that have none."""
