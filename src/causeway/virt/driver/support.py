"""The error of an operation that a driver does not have."""

from __future__ import annotations

from causeway.errors import NotImplementedHere


def unsupported(operation: str) -> NotImplementedHere:
    """What an optional method raises unless a driver overrides it. ``operation`` completes "The hypervisor can't ..."."""
    return NotImplementedHere(f"The hypervisor can't {operation}: the driver of this host does not support it.")
