"""Keeps a host and the records in agreement: reports, the inventory, claims that no guest ends, orders that it missed."""
