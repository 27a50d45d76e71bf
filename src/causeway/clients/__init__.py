"""The services around us, one client each: Placement, image, network, volume, identity."""
