"""Behaviour through the REST API."""
