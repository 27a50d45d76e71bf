"""A host's report at its cell's conductor: what can't be handed on of one server holds up nothing else."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from causeway import errors
from causeway.conductor.cells.cell import CellEndpoint
from causeway.conf import new_config
from causeway.context import admin_context
from causeway.model.flavor import Flavor
from causeway.model.host import ComputeNode
from causeway.model.instance import Instance
from causeway.model.outcomes import HostReport
from causeway.model.states import PowerState, VmState


class Cloud:
    """Notes what it is sent, and fails as long as it is to."""

    def __init__(self, failure: errors.CausewayError) -> None:
        self.failure: errors.CausewayError | None = failure
        self.reported: list[str] = []

    def guest_runs(self, _context: Any, *, instance_uuid: str) -> None:
        self._note(instance_uuid)

    def host_is_back(self, _context: Any, *, host: str) -> None:
        self._note(host)

    def _note(self, what: str) -> None:
        self.reported.append(what)
        if self.failure is not None:
            raise self.failure


FAILURES = [
    errors.RpcTimeout("cast", "super_conductor", 10.0),
    errors.ServerNotFound("gone"),
    errors.DatabaseFailed(""),
]


def endpoint(cloud: Any) -> CellEndpoint:
    def database() -> Any:
        raise AssertionError("nothing is written")

    return CellEndpoint(new_config(), database, cloud)


def report(*guests: str) -> HostReport:
    node = ComputeNode(str(uuid.uuid4()), "host1", "host1", "simulated", 1, vcpus=4, memory_mb=4096, local_gb=40)
    return HostReport(host="host1", service_version=1, node=node, guests=dict.fromkeys(guests, PowerState.RUNNING))


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: failure.code)
def test_a_guest_that_runs_though_it_is_stopped_and_can_not_be_reported(
    failure: errors.CausewayError, caplog: pytest.LogCaptureFixture
) -> None:
    cloud, flavor = Cloud(failure), Flavor("small", "small", vcpus=1, memory_mb=128, root_gb=1)
    server = Instance(str(uuid.uuid4()), "project", "user", "server", flavor, vm_state=VmState.STOPPED, host="host1")
    database: Any = None
    endpoint(cloud)._sync_power(admin_context(), database, server, report(server.uuid), looks=True)
    assert cloud.reported == [server.uuid]
    assert f"{server.uuid} on host1 was not" in caplog.text


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: failure.code)
@pytest.mark.parametrize("forced_down", [False, True])
def test_a_host_that_is_back_is_reported_until_that_arrives(failure: errors.CausewayError, forced_down: bool) -> None:
    """What continued without it is still there: it must not be discarded because nobody could be notified at that moment."""
    cloud = Cloud(failure)
    cell = endpoint(cloud)
    if forced_down:
        # It continues reporting while an operator says that it is dead.
        cell._heard["host1"] = 1e12
        cell._report_returned_host(admin_context(), report(), set(), True)
        assert cloud.reported == []
    for _again in range(2):
        cell._report_returned_host(admin_context(), report(), set(), False)
    cloud.failure = None
    for _again in range(2):
        cell._report_returned_host(admin_context(), report(), set(), False)
    assert cloud.reported == ["host1"] * 3
