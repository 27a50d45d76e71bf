"""An embedded cloud for each test module; see `moves_cloud` for what tests do with it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from causeway.embedded.cloud import EmbeddedCloud
from tests.functional.conftest import (
    empty_databases,
    empty_placement,
    put_schemas,
    put_state,
    short_pauses,
    started_once,
)
from tests.functional.servers.conftest import cloud_options, deployed, embedded
from tests.functional.servers.moves_cloud import Cloud

__all__ = [
    "cloud_options",
    "deployed",
    "embedded",
    "empty_databases",
    "empty_placement",
    "put_schemas",
    "put_state",
    "short_pauses",
    "started_once",
]


@pytest.fixture(scope="module")
def module_cloud(embedded: EmbeddedCloud) -> Cloud:
    return Cloud(embedded)


@pytest.fixture
def cloud(module_cloud: Cloud) -> Iterator[Cloud]:
    yield module_cloud
    module_cloud.heal()
    module_cloud.settle()
    module_cloud.clean()
