"""The conductor of a cell, which writes to the cell's database for the computes: they can't reach it."""
