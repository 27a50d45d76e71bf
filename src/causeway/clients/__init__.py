"""Clients of the other services: Placement, image, network, volume, identity."""
