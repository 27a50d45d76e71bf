"""An embedded cloud for each test module, all of whose hosts have a driver with nothing but the required methods."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from causeway.embedded.cloud import EmbeddedCloud
from causeway.embedded.host_kinds import SimulatedHosts
from causeway.virt.driver import Driver
from tests.functional.servers.conftest import cloud, declared, deployed
from tests.functional.servers.moves_cloud import Cloud

from .minimal_driver import minimal

__all__ = ["cloud", "declared", "deployed"]


@pytest.fixture(scope="module")
def module_cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    with pytest.MonkeyPatch.context() as patch:
        simulated = SimulatedHosts.driver

        def driver(self: SimulatedHosts, name: str) -> Driver:
            return minimal(simulated(self, name))

        patch.setattr(SimulatedHosts, "driver", driver)
        embedded = EmbeddedCloud(Path(tmp_path_factory.mktemp("cloud")), cells=2, hosts_per_cell=2, port=0)
        embedded.start()
        yield Cloud(embedded)
        embedded.stop()
