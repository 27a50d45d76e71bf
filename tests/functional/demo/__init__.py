"""The demo and its story."""
