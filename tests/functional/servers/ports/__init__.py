"""Ports of servers: bindings, events, addresses, guaranteed bandwidth."""
