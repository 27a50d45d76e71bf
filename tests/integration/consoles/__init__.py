"""Consoles of real guests."""
