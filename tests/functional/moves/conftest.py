"""An embedded cloud for each test module; see `moves_cloud` for what tests do with it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from moves_cloud import Cloud, until

from causeway.embedded.cloud import EmbeddedCloud


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCloud]:
    cloud = EmbeddedCloud(Path(tmp_path_factory.mktemp("cloud")), port=0, cells=2, hosts_per_cell=2)
    cloud.start()
    yield cloud
    cloud.stop()


@pytest.fixture(scope="module")
def module_cloud(embedded: EmbeddedCloud) -> Cloud:
    return Cloud(embedded)


@pytest.fixture
def cloud(module_cloud: Cloud) -> Iterator[Cloud]:
    yield module_cloud
    module_cloud.heal()
    module_cloud.settle()
    for server in list(module_cloud.admin.compute.servers()):
        module_cloud.admin.compute.delete_server(server.id)
    until(lambda: list(module_cloud.admin.compute.servers()), lambda left: not left, "the servers of the test to go")
