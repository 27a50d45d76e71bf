"""Clouds to break, and what their hosts have: seen on the hosts themselves."""
