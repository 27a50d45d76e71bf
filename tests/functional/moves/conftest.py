"""An embedded cloud for each test module, or the one of ``--cloud`` for all; see `moves_cloud` for what tests do with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from broken_hosts import force_down, stop
from by_url import deployed, sweep
from dead_hosts import come_back
from moves_cloud import Cloud

from causeway.embedded.cloud import EmbeddedCloud

__all__ = ["deployed"]


@pytest.fixture(scope="module")
def embedded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, deployed: Any) -> Iterator[Any]:
    """A module's ``CLOUD`` gives arguments of its own."""
    wanted = getattr(request.module, "CLOUD", {})
    if deployed is not None:
        deployed.check(wanted)
        with sweep(deployed):
            yield deployed
        return
    options = {"cells": 2, "hosts_per_cell": 2, **wanted}
    cloud = EmbeddedCloud(Path(tmp_path_factory.mktemp("cloud")), port=0, **options)
    cloud.start()
    yield cloud
    # Tests may have started some again: those are not known to the cloud.
    for service in cloud.computes.values():
        service.stop()
    cloud.stop()


@pytest.fixture(scope="module")
def module_cloud(embedded: Any) -> Cloud:
    return Cloud(embedded)


@pytest.fixture
def cloud(module_cloud: Cloud) -> Iterator[Cloud]:
    yield module_cloud
    module_cloud.heal()
    module_cloud.settle()
    module_cloud.clean()


@pytest.fixture
def dead(cloud: Cloud) -> Iterator[Callable[..., None]]:
    """Switches a host off, and says so if it is fenced; afterwards all are back."""
    stopped: set[str] = set()

    def die(host: str, *, fenced: bool = True) -> None:
        if host not in stopped:
            stop(cloud.embedded, host)
        stopped.add(host)
        force_down(cloud.embedded, host, fenced)

    yield die
    for host in list(cloud.parts.computes):
        if cloud.embedded.computes[host].host.stopping.is_set():
            come_back(cloud, host)
