"""A cloud of records alone, for each test module, emptied for each test; see `listed_cloud`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.store.listed_cloud import Cloud


@pytest.fixture(scope="module")
def module_cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    cloud = Cloud(tmp_path_factory.mktemp("cloud"))
    yield cloud
    cloud.close()


@pytest.fixture
def cloud(module_cloud: Cloud) -> Cloud:
    module_cloud.empty()
    return module_cloud
