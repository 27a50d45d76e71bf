"""A host that was declared dead is back before its operator says so, or while an operation still ends without it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from causeway import errors
from causeway.context import admin_context
from causeway.hosts import cleanups, whereabouts
from causeway.model.missed import Missed
from causeway.model.states import TaskState, VmState
from causeway.rpc.compute import ComputeClient
from causeway.store.api import journal
from causeway.store.cell import instances
from tests.functional.servers.broken_hosts import force_down
from tests.functional.servers.dead_hosts import CLOUD, left_on
from tests.functional.servers.moves_cloud import Cloud, until

__all__ = ["CLOUD"]

pytestmark = pytest.mark.embedded("reaches into drivers and conductors")

STARTS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "unpause": ("pause", "PAUSED", {"unpause": None}),
    "start": ("os-stop", "SHUTOFF", {"os-start": None}),
    "reboot": ("os-stop", "SHUTOFF", {"reboot": {"type": "HARD"}}),
    "resume": ("suspend", "SUSPENDED", {"resume": None}),
}


def act(cloud: Cloud, server: Any, body: dict[str, Any]) -> None:
    answer = cloud.member.compute.post(f"/servers/{server.id}/action", json=body)
    assert answer.status_code == 202, answer.text


@pytest.mark.parametrize("name", STARTS)
def test_guests_of_a_host_that_was_declared_dead_stay_off(cloud: Cloud, name: str) -> None:
    """Another host may run them already."""
    off, status, body = STARTS[name]
    server = cloud.boot()
    act(cloud, server, {off: None})
    cloud.wait(server, status)
    host = cloud.show(server).compute_host
    force_down(cloud.embedded, host)
    act(cloud, server, body)
    (fault,) = until(lambda: cloud.faults(server), bool, "the action to fail")
    assert fault.message == "The host of the server was declared dead."
    assert cloud.driver(host).running_anywhere(server.id) == []
    until(lambda: cloud.show(server).task_state, lambda task: task is None, "its task to end")
    force_down(cloud.embedded, host, False)
    act(cloud, server, {"reboot": {"type": "HARD"}})
    until(lambda: cloud.driver(host).running_anywhere(server.id), lambda found: found == [host], "the guest to run")


def test_an_operation_ends_while_its_cleanups_are_looked_at(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read before its end, the records say that the server lives there. Its cleanup is needed all the same."""
    server = cloud.boot()
    host, services = cloud.show(server).compute_host, cloud.embedded.conductor._services
    cell, _database = cloud.parts.cells.of_server(server.id)
    record = cloud.record(server, cell.name)
    cleanups.note(services, host, cell.uuid, Missed.REMOVE, record, [])
    under_way, look_for = [object()], whereabouts.look_for

    def ends_after_it_was_read(*given: Any) -> Any:
        found = look_for(*given)
        under_way.clear()
        return found

    monkeypatch.setattr(whereabouts, "look_for", ends_after_it_was_read)
    monkeypatch.setattr(journal, "active_of_server", lambda *_: next(iter(under_way), None))
    assert cleanups.due(services, host) == []
    assert left_on(cloud, host) == [Missed.REMOVE]
    # Nothing is under way any more, and the server lives there.
    assert cleanups.due(services, host) == []
    assert left_on(cloud, host) == []


def late_start(cloud: Cloud, server: Any, host: str) -> None:
    """What waited in the host's queue: its sender has stopped waiting long ago."""
    cell, database = cloud.parts.cells.of_server(server.id)
    ordered = replace(instances.get(database, server.id), task_state=TaskState.POWERING_ON, host=host)
    cloud.embedded.conductor._services.computes(cell.uuid).power_on_instance(
        admin_context(), host, instance=ordered, block_devices=[]
    )


def stopped(cloud: Cloud) -> tuple[Any, str]:
    server = cloud.boot()
    act(cloud, server, {"os-stop": None})
    cloud.wait(server, "SHUTOFF")
    return server, cloud.show(server).compute_host


def test_a_start_that_was_abandoned_starts_nothing(cloud: Cloud) -> None:
    server, host = stopped(cloud)
    with pytest.raises(errors.StateChanged, match="its start was abandoned"):
        late_start(cloud, server, host)
    assert cloud.driver(host).running_anywhere(server.id) == []


def test_a_start_for_a_host_that_was_left_starts_nothing(cloud: Cloud) -> None:
    server, host = stopped(cloud)
    _cell, database = cloud.parts.cells.of_server(server.id)
    instances.update(database, server.id, task_state=TaskState.POWERING_ON, host="elsewhere")
    try:
        with pytest.raises(errors.StateChanged):
            late_start(cloud, server, host)
    finally:
        instances.update(database, server.id, task_state=None, host=host)
    assert cloud.driver(host).running_anywhere(server.id) == []


def test_a_start_in_the_queue_of_a_host_that_was_declared_dead_starts_nothing(cloud: Cloud) -> None:
    server, host = stopped(cloud)
    _cell, database = cloud.parts.cells.of_server(server.id)
    instances.update(database, server.id, task_state=TaskState.POWERING_ON)
    force_down(cloud.embedded, host)
    try:
        with pytest.raises(errors.HostFenced):
            late_start(cloud, server, host)
    finally:
        force_down(cloud.embedded, host, False)
        instances.update(database, server.id, task_state=None)
    assert cloud.driver(host).running_anywhere(server.id) == []


def test_an_action_that_fails_late_leaves_the_task_of_another(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server is evacuated by now: its task and states are the evacuation's."""
    server, host = stopped(cloud)
    _cell, database = cloud.parts.cells.of_server(server.id)

    def time_out(*_arguments: Any, **_more: Any) -> None:
        instances.update(database, server.id, task_state=TaskState.REBUILDING)
        raise errors.RpcTimeout("reboot_instance", f"compute.{host}", 60.0)

    monkeypatch.setattr(ComputeClient, "reboot_instance", time_out)
    act(cloud, server, {"reboot": {"type": "HARD"}})
    until(lambda: cloud.faults(server), bool, "the reboot to fail")
    found = instances.get(database, server.id)
    instances.update(database, server.id, task_state=None)
    assert (found.task_state, found.vm_state) == (TaskState.REBUILDING, VmState.STOPPED)
