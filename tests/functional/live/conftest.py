"""An embedded cloud for each test module; see `moves_cloud` for what tests do with it, and `live_cloud` for live migrations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.functional.servers.conftest import at_point, cloud_options, dead, declared, deployed, dies_at, embedded

from .live_cloud import LiveCloud

__all__ = ["at_point", "cloud_options", "dead", "declared", "deployed", "dies_at", "embedded"]


@pytest.fixture(scope="module")
def module_cloud(embedded: Any) -> LiveCloud:
    return LiveCloud(embedded)


@pytest.fixture
def cloud(module_cloud: LiveCloud) -> Iterator[LiveCloud]:
    yield module_cloud
    module_cloud.heal()
    module_cloud.end_what_hangs()
    module_cloud.settle()
    module_cloud.clean()
