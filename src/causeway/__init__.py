"""Causeway: a compute control plane for clouds that are split into cells."""
