"""Hosts that are dead for good are drained too: of what is on volumes nothing is lost, and of the rest it is said."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from causeway.store.api import cleanups
from tests.functional.servers.dead_hosts import come_back

from .drains_cloud import DYING, DrainsCloud, until
from .test_left_behind import ELSEWHERE, ONE, THERE, TWO, act, cell_of, planned

CLOUD = DYING
pytestmark = [
    pytest.mark.embedded("stops compute services"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
]


def on_volume(cloud: DrainsCloud, host: str, name: str = "on volume") -> Any:
    """An ACTIVE server without anything on its host."""
    root = {
        "boot_index": 0,
        "source_type": "image",
        "destination_type": "volume",
        "uuid": cloud.image_id,
        "volume_size": 1,
        "delete_on_termination": True,
    }
    wanted = {
        "name": name,
        "flavorRef": "any.small",
        "networks": [{"uuid": cloud.network_id}],
        "block_device_mapping_v2": [root],
        "host": host,
    }
    answer = cloud.admin.compute.post("/servers", json={"server": wanted}, microversion="2.96")
    assert answer.status_code == 202, answer.text
    return cloud.wait(cloud.admin.compute.get_server(answer.json()["server"]["id"]), "ACTIVE")


def volumes_of(cloud: DrainsCloud, server: Any) -> list[tuple[str, str]]:
    return [(each["volume_id"], each["status"]) for each in cloud.attachments(server)]


def ports_of(cloud: DrainsCloud, server: Any) -> set[str]:
    return {port.binding_host_id for port in cloud.admin.network.ports(device_id=server.id)}


def check(cloud: DrainsCloud, server: Any, volumes: list[tuple[str, str]], *, running: bool = True) -> None:
    cloud.settle()
    assert cell_of(cloud, server) == "cell2"
    host = cloud.host_of(server)
    assert host in (THERE, ELSEWHERE)
    assert cloud.show(server).status == ("ACTIVE" if running else "SHUTOFF")
    assert [volume for volume, _status in volumes_of(cloud, server)] == [volume for volume, _status in volumes]
    assert ports_of(cloud, server) == {host}
    assert list(cloud.allocations(server.id)) == [host]
    # What its dead host has still goes when that is back.
    assert [each.host for each in cleanups.listed(cloud.parts.api_database)] == [ONE]
    come_back(cloud, ONE)
    until(lambda: cleanups.listed(cloud.parts.api_database), lambda left: not left, "the host to be cleaned")
    assert cloud.hosts_of(server) == {host: "guest"}
    assert cloud.audit().disagreements == []


@pytest.mark.parametrize("running", [True, False])
def test_what_is_on_volumes_comes_up_in_the_other_cell(
    cloud: DrainsCloud, dead: Callable[..., None], running: bool
) -> None:
    server = on_volume(cloud, ONE)
    cloud.driver(ONE).guest_write(server.id, "on its volume")
    if not running:
        cloud.member.compute.stop_server(server.id)
        cloud.wait(server, "SHUTOFF")
    volumes = volumes_of(cloud, server)
    dead(ONE)
    drain, plan = planned(cloud)
    row = cloud.row(drain, server)
    assert (row["state"], row["how"], row["bytes"]) == ("pending", "evacuate", 0)
    cloud.act(drain, "start")
    cloud.becomes_drain(drain, "done")
    row = cloud.row(drain, server)
    assert (row["state"], row["source_cell"], row["source_host"]) == ("done", "cell1", ONE)
    assert row["target_host"] == cloud.host_of(server)
    if not running:
        cloud.member.compute.start_server(server.id)
        cloud.wait(server, "ACTIVE")
    assert "on its volume" in cloud.driver(cloud.host_of(server)).guest_read(server.id)
    check(cloud, server, volumes)
    assert plan["movable"] == 1


def test_inside_its_cell_it_comes_up_on_another_host(cloud: DrainsCloud, dead: Callable[..., None]) -> None:
    server = on_volume(cloud, ONE)
    dead(ONE)
    drain, _plan = planned(cloud, scope={"hosts": [ONE]}, targets={"hosts": [TWO]})
    cloud.act(drain, "start")
    cloud.becomes_drain(drain, "done")
    assert (cloud.host_of(server), cloud.show(server).status) == (TWO, "ACTIVE")
    assert "migrate" not in cloud.actions(server)


def test_what_is_on_the_host_only_stays_and_the_reason_is_shown(cloud: DrainsCloud, dead: Callable[..., None]) -> None:
    server = cloud.on(ONE)
    dead(ONE)
    # Its guest is off when the host is back.
    drain, plan = planned(cloud, how="warm")
    row = cloud.row(drain, server)
    assert plan["blocked"] == 1
    assert "is dead, and its disks are nowhere else" in row["why"] and "what was on these disks is lost" in row["help"]
    cloud.act(drain, "start")
    cloud.sees(drain)
    assert cloud.row(drain, server)["state"] == "blocked"
    come_back(cloud, ONE)
    cloud.becomes_drain(drain, "done")
    assert cloud.row(drain, server)["why"] is None
    cloud.settle()
    assert cell_of(cloud, server) == "cell2"


def test_a_host_that_is_only_down_is_waited_for(cloud: DrainsCloud, dead: Callable[..., None]) -> None:
    server = on_volume(cloud, ONE)
    dead(ONE, fenced=False)
    cloud.option("service_down_time", 1)
    until(lambda: cloud.service(ONE).state, lambda state: state == "down", "the host to be down")
    drain, plan = planned(cloud)
    row = cloud.row(drain, server)
    assert (plan["blocked"], row["why"]) == (1, f"Its host {ONE} is down.")
    assert f"--down {ONE} nova-compute" in row["help"]


def test_one_that_dies_after_the_plan_is_evacuated(cloud: DrainsCloud, dead: Callable[..., None]) -> None:
    server = on_volume(cloud, ONE)
    volumes = volumes_of(cloud, server)
    drain, _plan = planned(cloud, how="warm")
    dead(ONE)
    cloud.act(drain, "start")
    cloud.becomes_drain(drain, "done")
    check(cloud, server, volumes)


def test_a_host_that_is_back_in_time_keeps_its_guest(
    cloud: DrainsCloud, dead: Callable[..., None], at_point: Callable[..., None]
) -> None:
    server = on_volume(cloud, ONE)
    dead(ONE)
    at_point("shelve_offload.RemoveGuest.do.before", lambda: come_back(cloud, ONE))
    drain, _plan = planned(cloud, how="cold")
    cloud.act(drain, "start")
    cloud.becomes_drain(drain, "done")
    cloud.settle()
    assert cloud.host_of(server) in (THERE, ELSEWHERE)
    assert [each.recipe for each in cloud.moves(server)][:1] == ["resize"]
    assert cleanups.listed(cloud.parts.api_database) == []


@pytest.mark.parametrize(
    "point",
    [
        *(f"shelve_offload.{step}.do.{side}" for step in ("RemoveGuest", "LeaveHost") for side in ("before", "after")),
        "move_records.MoveRecords.do.after",
        *(f"unshelve.{step}.do.{side}" for step in ("SelectHost", "StartGuest") for side in ("before", "after")),
        "drain.move.noted",
        "drain.move.after",
    ],
)
def test_a_drain_of_a_dead_host_survives_the_death_of_its_conductor(
    cloud: DrainsCloud, dead: Callable[..., None], dies_at: Callable[[str], None], point: str
) -> None:
    server = on_volume(cloud, ONE)
    volumes = volumes_of(cloud, server)
    dead(ONE)
    drain, _plan = planned(cloud)
    dies_at(point)
    cloud.act(drain, "start")
    cloud.becomes_drain(drain, "done")
    assert cloud.row(drain, server)["attempts"] == 0
    check(cloud, server, volumes)
    act(cloud, server, "reboot", {"type": "HARD"})
    cloud.wait(server, "ACTIVE")


@pytest.mark.parametrize("action", ["cancel", "undo", "rollback", "pause"])
def test_one_that_has_left_its_dead_host_comes_up_whatever_becomes_of_the_drain(
    cloud: DrainsCloud, dead: Callable[..., None], at_point: Callable[..., None], action: str
) -> None:
    """It ran before: it is not left without a guest because somebody thought better of the drain half way."""
    server = on_volume(cloud, ONE)
    volumes = volumes_of(cloud, server)
    dead(ONE)
    drain, _plan = planned(cloud)
    name, body = ("cancel", {"undo": True}) if action == "undo" else (action, None)
    # Behind its pivot: what is under way comes to its end.
    at_point("move_records.ShowRecords.do.before", lambda: cloud.act(drain, name, body))
    cloud.act(drain, "start")
    cloud.becomes_drain(drain, "cancelled", "rolled_back", "paused")
    cloud.becomes_row(drain, server, "done")
    check(cloud, server, volumes)
