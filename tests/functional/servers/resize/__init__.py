"""Resize and cold migration inside a cell and on one host, their confirm and revert."""
