"""Scheduling and allocations with the real Placement."""
