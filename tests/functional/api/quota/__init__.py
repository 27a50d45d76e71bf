"""Quota, unified limits and usage."""
