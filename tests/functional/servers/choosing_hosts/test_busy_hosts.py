"""Hosts report how much work with disks is under way on them, so that the scheduler can prefer those with less."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from causeway.scheduler.cells_source import CellsSource
from causeway.scheduler.host_state import HostState
from tests.functional.servers.moves_cloud import Cloud

pytestmark = pytest.mark.embedded("stops a host's driver in the middle of an order")


def busy(cloud: Cloud) -> dict[str, int]:
    """Host -> what it had to do when it reported now; without those that are idle."""
    for service in cloud.parts.computes.values():
        service._reporter.report_alive()
    states = [HostState(record) for record in CellsSource(cloud.parts.cells).host_states(None)]
    return {state.host: state.num_io_ops for state in states if state.num_io_ops}


@dataclass
class Builds:
    """The builds of all hosts wait until they may continue."""

    hosts: list[str] = field(default_factory=list)
    began: threading.Event = field(default_factory=threading.Event)
    may_continue: threading.Event = field(default_factory=threading.Event)


@pytest.fixture
def builds(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> Iterator[Builds]:
    found = Builds()

    def waiting(host: str) -> Any:
        spawn = cloud.driver(host).spawn

        def wait(*given: Any, **named: Any) -> Any:
            found.hosts.append(host)
            found.began.set()
            assert found.may_continue.wait(60)
            return spawn(*given, **named)

        return wait

    for host in cloud.parts.computes:
        monkeypatch.setattr(cloud.driver(host), "spawn", waiting(host))
    yield found
    found.may_continue.set()


def test_a_build_counts_as_long_as_it_is_under_way(cloud: Cloud, builds: Builds) -> None:
    assert busy(cloud) == {}
    server = cloud.member.compute.create_server(
        name="busy", image_id=cloud.image_id, flavor_id="gen1.small", networks=[{"uuid": cloud.network_id}]
    )
    assert builds.began.wait(60)
    assert busy(cloud) == {builds.hosts[0]: 1}
    builds.may_continue.set()
    cloud.wait(server, "ACTIVE")
    cloud.settle()
    assert busy(cloud) == {}
