"""Resize and cold migration to another cell: the pivot, who may leave the cell, confirm and revert."""
