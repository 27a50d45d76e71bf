"""Image v2: images with their real bytes."""
