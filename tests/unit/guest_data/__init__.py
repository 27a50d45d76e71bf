"""`causeway.guest_data`."""
