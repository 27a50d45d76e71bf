"""Aggregates, compute services and hypervisors."""
