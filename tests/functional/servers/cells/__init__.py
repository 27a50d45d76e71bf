"""Cells come, go, hang, and have conductors of their own."""
