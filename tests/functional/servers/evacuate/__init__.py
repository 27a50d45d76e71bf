"""Evacuation of servers whose host is dead."""
