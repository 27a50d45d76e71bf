"""Pinned CPUs and huge pages of real guests."""
