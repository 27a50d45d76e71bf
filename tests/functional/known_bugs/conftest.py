"""One cloud for all tests of known bugs; see `known_bugs_cloud` and `moves_cloud` for what tests do with it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from causeway.embedded.cloud import EmbeddedCloud
from tests.functional.servers.by_url import deployed, sweep

from .known_bugs_cloud import KnownBugsCloud

__all__ = ["deployed"]


@pytest.fixture(scope="package")
def package_cloud(tmp_path_factory: pytest.TempPathFactory, deployed: Any) -> Iterator[KnownBugsCloud]:
    if deployed is not None:
        deployed.check({"overrides": {"scheduler": {"host_state_max_age": 0}}})
        with sweep(deployed):
            yield KnownBugsCloud(deployed)
        return
    embedded = EmbeddedCloud(
        Path(tmp_path_factory.mktemp("cloud")),
        port=0,
        cells=2,
        hosts_per_cell=2,
        overrides={
            "moves": {"lease": 1.5, "first_pause": 0.02, "stuck_retry_interval": 0.2, "attempts": 2},
            "quota": {"instances": -1, "cores": -1, "ram": -1},
            # Zones, aggregates and disabled services count as soon as they are changed.
            "scheduler": {"host_state_max_age": 0},
        },
    )
    embedded.start()
    yield KnownBugsCloud(embedded)
    embedded.stop()


@pytest.fixture
def cloud(package_cloud: KnownBugsCloud) -> Iterator[KnownBugsCloud]:
    yield package_cloud
    package_cloud.heal()
    package_cloud.settle()
    package_cloud.clean()
