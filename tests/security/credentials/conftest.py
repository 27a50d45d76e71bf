"""An embedded cloud for each module, as for the tests of servers."""

from __future__ import annotations

from tests.functional.conftest import (
    empty_databases,
    empty_placement,
    put_schemas,
    put_state,
    short_pauses,
    started_once,
)
from tests.functional.servers.conftest import (
    at_point,
    cloud,
    cloud_options,
    deployed,
    dies_at,
    embedded,
    module_cloud,
    other,
)

__all__ = [
    "at_point",
    "cloud",
    "cloud_options",
    "deployed",
    "dies_at",
    "embedded",
    "empty_databases",
    "empty_placement",
    "module_cloud",
    "other",
    "put_schemas",
    "put_state",
    "short_pauses",
    "started_once",
]
