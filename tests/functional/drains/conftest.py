"""An embedded cloud for each test module; see `moves_cloud` for what tests do with it."""

from __future__ import annotations

from tests.functional.moves.conftest import cloud, declared, deployed, embedded, module_cloud

__all__ = ["cloud", "declared", "deployed", "embedded", "module_cloud"]
