"""Rescue and unrescue."""
