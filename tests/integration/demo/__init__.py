"""The demo on real guests."""
