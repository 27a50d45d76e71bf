"""An embedded cloud for each test module; see `moves_cloud` for what tests do with it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from moves_cloud import Cloud

from causeway.embedded.cloud import EmbeddedCloud


@pytest.fixture(scope="module")
def embedded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCloud]:
    """A module's ``CLOUD`` gives arguments of its own."""
    options = {"cells": 2, "hosts_per_cell": 2, **getattr(request.module, "CLOUD", {})}
    cloud = EmbeddedCloud(Path(tmp_path_factory.mktemp("cloud")), port=0, **options)
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
    module_cloud.clean()
