"""An embedded cloud for each test module; see `shared_cloud`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.functional.servers.shared_disks.shared_cloud import SharedCloud


@pytest.fixture(scope="module")
def module_cloud(embedded: Any) -> SharedCloud:
    return SharedCloud(embedded)


@pytest.fixture
def cloud(module_cloud: SharedCloud) -> Iterator[SharedCloud]:
    yield module_cloud
    module_cloud.heal()
    module_cloud.settle()
    module_cloud.clean()
