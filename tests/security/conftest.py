"""The fixtures of whole clouds (see `tests.functional.servers.moves_cloud`)."""

from __future__ import annotations

from tests.functional.conftest import (
    empty_databases,
    empty_placement,
    put_schemas,
    put_state,
    short_pauses,
    started_once,
)
from tests.functional.servers.conftest import cloud, cloud_options, deployed, embedded, module_cloud

__all__ = [
    "cloud",
    "cloud_options",
    "deployed",
    "embedded",
    "empty_databases",
    "empty_placement",
    "module_cloud",
    "put_schemas",
    "put_state",
    "short_pauses",
    "started_once",
]
