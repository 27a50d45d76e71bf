"""Flavors, who may use them, and their extra specs."""
