"""Turns requests and unfinished work of the previous release into operations of the journal."""
