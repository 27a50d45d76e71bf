"""The metadata service: what guests may read, and who asks."""
