"""An embedded cloud for each test module whose conductor looks at drains often; see `drains_cloud`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.functional.servers.conftest import at_point, cloud_options, dead, declared, deployed, dies_at, embedded

from .drains_cloud import DrainsCloud

__all__ = ["at_point", "cloud_options", "dead", "declared", "deployed", "dies_at", "embedded"]


@pytest.fixture(scope="module")
def module_cloud(embedded: Any) -> DrainsCloud:
    return DrainsCloud(embedded)


@pytest.fixture
def cloud(module_cloud: DrainsCloud) -> Iterator[DrainsCloud]:
    yield module_cloud
    module_cloud.heal()
    module_cloud.end_what_hangs()
    module_cloud.end_drains()
    module_cloud.settle()
    module_cloud.clean()
