"""Evacuations that fail, are repeated or are cancelled: volumes and ports are where the server is, and nothing is stuck."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from causeway.rpc.transport import Verdict
from causeway.store.api import journal
from tests.functional.servers.dead_hosts import come_back
from tests.functional.servers.moves_cloud import Cloud, until

pytestmark = [pytest.mark.embedded("reaches into drivers"), pytest.mark.usefixtures("dead")]

KINDS = pytest.mark.parametrize("kind", ["root volume", "data volume"])


def with_volume(cloud: Cloud, kind: str) -> tuple[Any, str]:
    server = cloud.boot_from_volume() if kind == "root volume" else cloud.boot()
    if kind == "data volume":
        cloud.attach(server, cloud.volume())
    return server, cloud.show(server).compute_host


def other_host(host: str) -> str:
    return "cell1-host2" if host == "cell1-host1" else "cell1-host1"


def evacuate(cloud: Cloud, server: Any) -> None:
    answer = cloud.admin.compute.post(f"/servers/{server.id}/action", json={"evacuate": {}}, microversion="2.94")
    assert answer.status_code == 200, answer.text


def newest(cloud: Cloud, server: Any) -> Any:
    return journal.of_server(cloud.parts.api_database, server.id)[-1]


def failed(cloud: Cloud, server: Any) -> Any:
    """The server when its evacuation was rolled back."""
    until(lambda: newest(cloud, server).state, lambda state: state in ("failed", "stuck"), "the evacuation to fail")
    assert newest(cloud, server).state == "failed"
    return until(lambda: cloud.show(server), lambda found: found.task_state is None, "the server to rest")


def attachments(cloud: Cloud, server: Any) -> list[str]:
    return sorted(found["status"] for found in cloud.attachments(server))


def bindings(cloud: Cloud, server: Any) -> dict[str, tuple[str, str]]:
    """Of each port: where it is bound, and its owner."""
    return {
        port.id: (port.binding_host_id, port.device_owner) for port in cloud.admin.network.ports(device_id=server.id)
    }


def cancel(cloud: Cloud, server: Any, migration: Any) -> int:
    path = f"/servers/{server.id}/migrations/{migration}"
    status: int = cloud.admin.compute.delete(path, microversion="2.80").status_code
    return status


@KINDS
@pytest.mark.parametrize("method", ["spawn", "check_volume_connectable"])
def test_a_guest_that_can_not_be_made_keeps_its_volumes(
    cloud: Cloud, dead: Callable[..., None], kind: str, method: str
) -> None:
    """The new host has named itself to the volume service when it fails."""
    server, host = with_volume(cloud, kind)
    dead(host)
    cloud.without_patience()
    cloud.break_driver([other_host(host)], method)
    evacuate(cloud, server)
    assert failed(cloud, server).compute_host == host
    assert attachments(cloud, server) == ["attached"]
    cloud.heal()
    evacuate(cloud, server)
    assert cloud.wait(server, "ACTIVE").compute_host == other_host(host)
    assert attachments(cloud, server) == ["attached"]


@KINDS
def test_a_step_that_is_repeated_keeps_the_attachment_of_the_new_guest(
    cloud: Cloud, dead: Callable[..., None], kind: str
) -> None:
    server, host = with_volume(cloud, kind)
    dead(host)
    cloud.lose("rebuild_guest", Verdict.LOSE_REPLY)
    evacuate(cloud, server)
    assert cloud.wait(server, "ACTIVE").compute_host == other_host(host)
    assert attachments(cloud, server) == ["attached"]
    come_back(cloud, host)


def test_a_server_that_can_not_be_unshelved_keeps_its_volumes(cloud: Cloud) -> None:
    server, _host = with_volume(cloud, "root volume")
    cloud.member.compute.shelve_server(server.id)
    cloud.wait(server, "SHELVED_OFFLOADED")
    cloud.without_patience()
    cloud.break_driver(list(cloud.parts.computes), "spawn")
    cloud.member.compute.unshelve_server(server.id)
    failed(cloud, server)
    assert attachments(cloud, server) == ["reserved"]
    cloud.heal()
    cloud.member.compute.unshelve_server(server.id)
    cloud.wait(server, "ACTIVE")
    assert attachments(cloud, server) == ["attached"]


@KINDS
@pytest.mark.parametrize("status", ["ACTIVE", "SHUTOFF"])
def test_a_cancelled_evacuation_leaves_nothing(cloud: Cloud, dead: Callable[..., None], kind: str, status: str) -> None:
    server, host = with_volume(cloud, kind)
    if status == "SHUTOFF":
        cloud.member.compute.stop_server(server.id)
        cloud.wait(server, status)
    ports, allocations = bindings(cloud, server), cloud.allocations(server.id)
    dead(host)
    with cloud.held("rebuild_guest") as begun:
        evacuate(cloud, server)
        assert begun.wait(10)
        assert cancel(cloud, server, cloud.migration(server).id) == 202
    found = failed(cloud, server)
    assert (found.status, found.compute_host) == (status, host)
    assert bindings(cloud, server) == ports and {bound for bound, _owner in ports.values()} == {host}
    assert cloud.allocations(server.id) == allocations
    assert attachments(cloud, server) == ["attached"]
    assert cloud.migration(server).status == "cancelled"
    assert cloud.driver(other_host(host)).inspect(server.id).power_state is None
    come_back(cloud, host)
    cloud.admin.compute.reboot_server(server.id, "HARD")
    cloud.wait(server, "ACTIVE")
    assert attachments(cloud, server) == ["attached"]


def test_a_failed_evacuation_says_why_and_leaves_the_ports_where_the_server_is(
    cloud: Cloud, dead: Callable[..., None]
) -> None:
    server = cloud.boot()
    host = cloud.show(server).compute_host
    ports = bindings(cloud, server)
    dead(host)
    cloud.without_patience()
    cloud.break_driver([other_host(host)], "spawn")
    evacuate(cloud, server)
    found = failed(cloud, server)
    assert (found.status, found.compute_host) == ("ERROR", host) and found.fault["message"]
    assert bindings(cloud, server) == ports


def test_another_evacuation_cancels_one_that_is_under_way(cloud: Cloud, dead: Callable[..., None]) -> None:
    server = cloud.boot()
    host = cloud.show(server).compute_host
    dead(host)
    with cloud.held("rebuild_guest") as begun:
        evacuate(cloud, server)
        assert begun.wait(10)
        path = f"/servers/{server.id}/action"
        answer = cloud.admin.compute.post(path, json={"evacuate": {}}, microversion="2.95")
        assert answer.status_code == 409 and "evacuate, which was cancelled" in answer.text
    assert failed(cloud, server).compute_host == host
