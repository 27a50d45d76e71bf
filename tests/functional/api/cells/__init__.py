"""Cells, also many of them and those that are down."""
