"""An embedded cloud for each test module (see `moves_cloud`), and its audit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from causeway.embedded.cloud import EmbeddedCloud
from tests.functional.servers.audited_cloud import AuditedCloud


@pytest.fixture(scope="module")
def embedded(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    put_state: Callable[[Path, int, int], None],
) -> Iterator[EmbeddedCloud]:
    """A module's ``CLOUD`` gives arguments of its own."""
    options = {"cells": 2, "hosts_per_cell": 2, **getattr(request.module, "CLOUD", {})}
    folder = tmp_path_factory.mktemp("cloud")
    put_state(folder, options["cells"], options["hosts_per_cell"])
    cloud = EmbeddedCloud(folder, port=0, **options)
    cloud.start()
    yield cloud
    cloud.stop()


@pytest.fixture(scope="module")
def module_cloud(embedded: EmbeddedCloud) -> AuditedCloud:
    return AuditedCloud(embedded)


@pytest.fixture
def cloud(module_cloud: AuditedCloud) -> Iterator[AuditedCloud]:
    yield module_cloud
    module_cloud.heal()
    module_cloud.settle()
    module_cloud.clean()
