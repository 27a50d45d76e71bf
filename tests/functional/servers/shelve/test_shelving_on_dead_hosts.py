"""Shelving and unshelving servers on a host that an operator said to be dead: the server is as it was, at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from causeway.model.states import PowerState
from causeway.rpc.transport import Verdict
from causeway.store.api import journal
from causeway.virt.driver import ROOT_DISK
from causeway.virt.simulated import disk
from tests.functional.servers.broken_hosts import force_down
from tests.functional.servers.dead_hosts import come_back, dies_when
from tests.functional.servers.moves_cloud import Cloud, until

pytestmark = [pytest.mark.embedded("stops compute services"), pytest.mark.usefixtures("dead")]


def ended(cloud: Cloud, server: Any) -> Any:
    """The server when its operation was rolled back."""
    newest = lambda: journal.of_server(cloud.parts.api_database, server.id)[-1]  # noqa: E731
    until(newest, lambda move: move.state == "failed", "the operation to be rolled back")
    return until(lambda: cloud.show(server), lambda found: found.task_state is None, "the server to rest")


def lines_on_disk(cloud: Cloud, server: Any, host: str) -> list[str]:
    """What the guest wrote, and what was in its image."""
    return disk.load(cloud.driver(host).files.disks(server.id) / ROOT_DISK).all_lines


def evacuated(cloud: Cloud, server: Any, host: str) -> None:
    answer = cloud.admin.compute.post(f"/servers/{server.id}/action", json={"evacuate": {}}, microversion="2.94")
    assert answer.status_code == 200, answer.text
    there: str = cloud.wait(server, "ACTIVE").compute_host
    assert there != host
    come_back(cloud, host)
    assert cloud.driver(there).running_anywhere(server.id) == [there]


@pytest.mark.parametrize(
    ("kind", "when"),
    [("image", "before"), ("image", "ordered"), ("volume", "before"), ("volume", "ordered"), ("volume", "carried out")],
)
def test_a_shelve_on_a_dead_host_is_abandoned(cloud: Cloud, dead: Callable[..., None], kind: str, when: str) -> None:
    server = cloud.boot() if kind == "image" else cloud.boot_from_volume()
    host = cloud.show(server).compute_host
    cloud.option("rpc_response_timeout", 1)
    if when == "before":
        dead(host)
    else:
        verdict = Verdict.LOSE_REQUEST if when == "ordered" else Verdict.LOSE_REPLY
        dies_when(cloud, dead, ("upload_disk", "store_disk"), verdict, fenced=True)
    cloud.admin.compute.shelve_server(server.id)
    if when == "carried out":
        until(lambda: cloud.driver(host).inspect(server.id).power_state, lambda it: it is PowerState.SHUTDOWN, "off")
        dead(host)
    found = ended(cloud, server)
    assert (found.status, found.compute_host) == ("ACTIVE", host)
    assert list(cloud.admin.image.images(instance_uuid=server.id)) == []
    assert cloud.faults(server)[-1].message
    evacuated(cloud, server, host)


def test_a_shelve_whose_image_is_complete_needs_its_host_no_more(cloud: Cloud, dead: Callable[..., None]) -> None:
    """The host is dead for good: that image is the only copy of the server's disk."""
    server = cloud.boot()
    host = cloud.show(server).compute_host
    written = lines_on_disk(cloud, server, host)
    assert written
    cloud.option("rpc_response_timeout", 1)
    dies_when(cloud, dead, ("upload_disk", "store_disk"), Verdict.LOSE_REPLY, fenced=True)
    cloud.admin.compute.shelve_server(server.id)
    until(lambda: cloud.driver(host).inspect(server.id).power_state, lambda it: it is PowerState.SHUTDOWN, "off")
    dead(host)
    cloud.wait(server, "SHELVED_OFFLOADED")
    cloud.settle()
    cloud.member.compute.unshelve_server(server.id)
    there = cloud.wait(server, "ACTIVE").compute_host
    assert there != host
    assert lines_on_disk(cloud, server, there)[: len(written)] == written


def test_a_shelve_on_a_host_that_is_only_down_waits(cloud: Cloud, dead: Callable[..., None]) -> None:
    server = cloud.boot()
    host = cloud.show(server).compute_host
    dead(host, fenced=False)
    cloud.admin.compute.shelve_server(server.id)
    newest = lambda: journal.of_server(cloud.parts.api_database, server.id)[-1]  # noqa: E731
    until(newest, lambda move: bool(move.error), "the shelve to wait for its host")
    assert cloud.show(server).task_state == "shelving"
    force_down(cloud.embedded, host)
    assert ended(cloud, server).status == "ACTIVE"
    come_back(cloud, host)


def test_an_unshelve_on_a_dead_host_is_abandoned(cloud: Cloud, dead: Callable[..., None]) -> None:
    cloud.option("shelved_offload_time", -1)
    server = cloud.boot()
    host = cloud.show(server).compute_host
    cloud.member.compute.shelve_server(server.id)
    cloud.wait(server, "SHELVED")
    dead(host)
    cloud.member.compute.unshelve_server(server.id)
    assert ended(cloud, server).status == "SHELVED"
    come_back(cloud, host)
    cloud.member.compute.unshelve_server(server.id)
    assert cloud.wait(server, "ACTIVE").compute_host == host
