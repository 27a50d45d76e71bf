"""The package is built and installed."""
