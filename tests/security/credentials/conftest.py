"""Fixtures of tests in which conductors die; those of whole clouds are in the folder above."""

from __future__ import annotations

from tests.functional.servers.conftest import at_point, dies_at, other

__all__ = ["at_point", "dies_at", "other"]
