"""Turns requests and unfinished work of the previous release, which has no journal for them, into operations."""
