"""Servers that no resize takes: a drain moves them too, or says why not, so that a cell that was emptied is empty."""

from __future__ import annotations

from typing import Any

import pytest

from causeway.model.states import TaskState, VmState
from causeway.store.api import mappings
from causeway.store.cell import copies, instances
from tests.functional.servers.moves_cloud import Cloud

from .drains_cloud import DrainsCloud, until

ONE, TWO = "cell1-host1", "cell1-host2"
THERE, ELSEWHERE = "cell2-host1", "cell2-host2"
CLOUD: dict[str, Any] = {"overrides": {"drains": {"interval": 0.1, "retry_pause": 0.1}}}


def act(cloud: Cloud, server: Any, action: str, body: Any = None, user: Any = None) -> None:
    answer = (user or cloud.member).compute.post(
        f"/servers/{server.id}/action", json={action: body}, microversion="2.93"
    )
    assert answer.status_code == 202, answer.text


def shelved(cloud: DrainsCloud, server: Any) -> Any:
    act(cloud, server, "shelve")
    cloud.wait(server, "SHELVED_OFFLOADED")
    cloud.settle()
    return server


def in_error(cloud: DrainsCloud, server: Any) -> Any:
    """As what failed on it had left it."""
    act(cloud, server, "os-resetState", {"state": "error"}, cloud.admin)
    assert cloud.show(server).status == "ERROR"
    return server


def planned(cloud: DrainsCloud, **request: Any) -> tuple[str, Any]:
    """The id of a drain of cell1 that was planned by the API, and its plan."""
    wanted = {"drain": {"name": "empty", "scope": {"cells": ["cell1"]}, **request}}
    answer = cloud.admin.compute.post("/os-causeway/drains", json=wanted, microversion="2.1")
    assert answer.status_code == 201, answer.text
    return answer.json()["drain"]["id"], answer.json()["plan"]


def drained(cloud: DrainsCloud, **request: Any) -> str:
    drain, _plan = planned(cloud, **request)
    cloud.act(drain, "start")
    cloud.becomes_drain(drain, "done")
    cloud.settle()
    return drain


def cell_of(cloud: DrainsCloud, server: Any) -> str:
    """Where the server lives; no other cell has anything of it."""
    there = [name for name in ("cell1", "cell2") if copies.exists(cloud.cell(name), server.id)]
    uuid = mappings.get(cloud.parts.api_database, server.id).cell_uuid
    assert there == [cloud.parts.cells.mapping(uuid or "").name]
    assert not cloud.record(server, there[0]).hidden
    return there[0]


def test_one_that_is_shelved_and_offloaded_goes_with_its_records(cloud: DrainsCloud) -> None:
    server = cloud.on(ONE)
    cloud.attach(server, cloud.volume())
    cloud.driver(ONE).guest_write(server.id, "on disk")
    cloud.member.compute.set_server_metadata(server, owner="me")
    cloud.member.compute.put(f"/servers/{server.id}/tags/kept", microversion="2.26")
    shelved(cloud, server)
    before = cloud.show(server).to_dict() | {"updated_at": None}
    drain, plan = planned(cloud)
    assert (plan["movable"], plan["blocked"], plan["bytes"], plan["seconds"]) == (1, 0, 0, 0.0)
    row = cloud.row(drain, server)
    assert (row["state"], row["how"], row["target_cell"], row["target_host"]) == ("pending", "records", "cell2", None)
    cloud.act(drain, "start")
    shown = cloud.becomes_drain(drain, "done")
    assert shown["progress"]["servers"] == {"done": 1}
    assert cell_of(cloud, server) == "cell2"
    assert cloud.show(server).to_dict() | {"updated_at": None} == before
    assert cloud.actions(server)[-3:] == ["shelve", "drain", "migrate"]
    assert cloud.events(server, "migrate") == [("conductor_migrate_server", "Success")]
    assert cloud.events(server, "shelve")
    assert cloud.audit().disagreements == []
    act(cloud, server, "unshelve")
    cloud.wait(server, "ACTIVE")
    assert cloud.host_of(server) in (THERE, ELSEWHERE)
    assert "on disk" in cloud.driver(cloud.host_of(server)).guest_read(server.id)
    assert [each["status"] for each in cloud.attachments(server)] == ["attached"]
    assert cloud.audit().disagreements == []


def test_one_that_is_shelved_and_on_its_host_is_offloaded_first(cloud: DrainsCloud) -> None:
    cloud.option("shelved_offload_time", -1)
    server = cloud.on(ONE)
    act(cloud, server, "shelve")
    cloud.wait(server, "SHELVED")
    drained(cloud)
    assert cell_of(cloud, server) == "cell2"
    assert cloud.show(server).status == "SHELVED_OFFLOADED"
    assert cloud.hosts_of(server) == {}
    act(cloud, server, "unshelve")
    cloud.wait(server, "ACTIVE")
    assert cloud.audit().disagreements == []


def test_a_shelved_server_may_get_another_flavor_when_it_is_drained(cloud: DrainsCloud) -> None:
    server = shelved(cloud, cloud.on(ONE, flavor="gen1.small"))
    drain, plan = planned(cloud)
    row = cloud.row(drain, server)
    assert (row["state"], plan["movable"]) == ("blocked", 0), "no host of the other cell is for its flavor"
    cloud.act(drain, "cancel", {"undo": False})
    cloud.flavor("gen2.wide", gen=2, vcpus=2, swap=64)
    drained(cloud, flavors={"gen1.small": "gen2.wide"})
    assert cell_of(cloud, server) == "cell2"
    assert cloud.show(server).flavor["original_name"] == "gen2.wide"
    act(cloud, server, "unshelve")
    cloud.wait(server, "ACTIVE")
    (held,) = cloud.allocations(server.id).values()
    assert held["VCPU"] == 2
    assert cloud.audit().disagreements == []


def test_one_that_is_shelved_while_the_drain_runs_goes_by_its_records(cloud: DrainsCloud) -> None:
    known, unknown = cloud.on(ONE), cloud.on(TWO)
    drain, _plan = planned(cloud, windows=[{"days": [0], "start": "00:00", "end": "00:01", "zone": "UTC"}])
    late = cloud.on(ONE, "late")
    for each in (known, unknown, late):
        shelved(cloud, each)
    with cloud.parts.api_database.write() as connection:
        connection.exec_driver_sql("DELETE FROM drain_servers WHERE instance_uuid = ?", (unknown.id,))
        connection.exec_driver_sql("UPDATE drains SET request = json_set(request, '$.windows', json('[]'))")
    cloud.act(drain, "start")
    cloud.becomes_drain(drain, "done")
    assert [cell_of(cloud, each) for each in (known, unknown, late)] == ["cell2"] * 3
    assert set(cloud.states(drain)) == {"done"} and len(cloud.rows(drain)) == 3


def test_one_that_is_named_stays_if_its_cell_is_among_the_targets(cloud: DrainsCloud) -> None:
    server = shelved(cloud, cloud.on(ONE))
    drain, plan = planned(cloud, scope={"servers": [server.id]}, targets={"cells": ["cell1", "cell2"]})
    assert (plan["movable"], plan["blocked"]) == (0, 0)
    row = cloud.row(drain, server)
    assert row["state"] == "passed_over" and "stays there" in row["why"]
    cloud.act(drain, "start")
    cloud.becomes_drain(drain, "done")
    assert cell_of(cloud, server) == "cell1"


def test_a_drain_of_hosts_is_not_about_servers_without_one(cloud: DrainsCloud) -> None:
    server = shelved(cloud, cloud.on(ONE))
    _drain, plan = planned(cloud, scope={"hosts": [ONE, TWO]})
    assert plan["movable"] == 0
    assert cell_of(cloud, server) == "cell1"


def test_one_that_its_user_unshelves_meanwhile_goes_as_any_other(cloud: DrainsCloud) -> None:
    server = shelved(cloud, cloud.on(ONE))
    drain, _plan = planned(cloud)
    act(cloud, server, "unshelve")
    cloud.wait(server, "ACTIVE")
    assert cloud.host_of(server) in (ONE, TWO)
    cloud.act(drain, "start")
    cloud.becomes_drain(drain, "done")
    assert cloud.host_of(server) in (THERE, ELSEWHERE)
    assert cloud.show(server).status == "ACTIVE"


def test_one_in_error_that_never_had_a_host_goes_with_its_fault(cloud: DrainsCloud) -> None:
    cloud.without_patience()
    cloud.break_driver([ONE, TWO], "spawn")
    server = cloud.member.compute.create_server(
        name="broken", flavor_id="gen1.small", image_id=cloud.image_id, networks=[{"uuid": cloud.network_id}]
    )
    until(lambda: cloud.show(server), lambda found: found.status == "ERROR", "it to fail")
    cloud.settle()
    cloud.heal()
    cell, fault = cell_of(cloud, server), cloud.show(server).fault["message"]
    assert cell == "cell1"
    with cloud.cell("cell1").write() as connection:
        instances.update_in(connection, server.id, host=None, node=None)
    drained(cloud, flavors={"gen1.small": "gen2.small"})
    assert cell_of(cloud, server) == "cell2"
    shown = cloud.show(server)
    assert (shown.status, shown.fault["message"]) == ("ERROR", fault)
    assert cloud.audit().disagreements == []


@pytest.mark.parametrize("running", [False, True])
def test_one_in_error_goes_with_its_disk_and_stays_in_error(cloud: DrainsCloud, running: bool) -> None:
    server = cloud.on(ONE)
    cloud.driver(ONE).guest_write(server.id, "on disk")
    if not running:
        cloud.member.compute.stop_server(server.id)
        cloud.wait(server, "SHUTOFF")
    in_error(cloud, server)
    drain, plan = planned(cloud)
    assert (plan["movable"], cloud.row(drain, server)["how"]) == (1, "cold")
    cloud.act(drain, "start")
    cloud.becomes_drain(drain, "done")
    shown = cloud.show(server)
    assert (shown.status, shown.power_state) == ("ERROR", 1 if running else 4)
    assert cell_of(cloud, server) == "cell2"
    there = cloud.driver(cloud.host_of(server))
    assert "on disk" in there.guest_read(server.id)
    assert cloud.hosts_of(server) == {cloud.host_of(server): "guest"}
    assert cloud.audit().disagreements == []
    act(cloud, server, "reboot", {"type": "HARD"})
    cloud.wait(server, "ACTIVE")


def test_one_in_error_comes_back_in_error_if_the_drain_is_rolled_back(cloud: DrainsCloud) -> None:
    server = in_error(cloud, cloud.on(ONE))
    drain, _plan = planned(cloud, afterwards="owners")
    cloud.act(drain, "start")
    cloud.becomes_drain(drain, "done")
    assert cloud.show(server).status == "VERIFY_RESIZE"
    cloud.act(drain, "rollback")
    cloud.becomes_drain(drain, "rolled_back")
    shown = cloud.show(server)
    assert (shown.status, shown.power_state, shown.compute_host) == ("ERROR", 1, ONE)
    assert cloud.audit().disagreements == []


def test_one_in_error_whose_disks_are_not_there_is_left_alone(cloud: DrainsCloud) -> None:
    server = cloud.on(ONE)
    cloud.driver(ONE).destroy(server.id, [], [], destroy_disks=True)
    in_error(cloud, server)
    drain, _plan = planned(cloud)
    cloud.act(drain, "start")
    row = cloud.becomes_row(drain, server, "failed")
    assert "no disks in their place" in row["why"]
    assert cloud.moves(server) == [] and cloud.record(server, "cell1").task_state is None


def test_one_that_is_kept_after_its_delete_is_waited_for(cloud: DrainsCloud) -> None:
    cloud.option("reclaim_instance_interval", 36000)
    server = cloud.on(ONE)
    cloud.member.compute.delete_server(server.id)
    until(lambda: cloud.record(server, "cell1").vm_state, lambda state: state is VmState.SOFT_DELETED, "it to be kept")
    cloud.settle()
    drain, plan = planned(cloud)
    assert plan["blocked"] == 1
    cloud.act(drain, "start")
    row = until(lambda: cloud.row(drain, server), lambda row: "kept until 2" in (row["why"] or ""), "a reason")
    assert row["state"] == "blocked"
    act(cloud, server, "forceDelete", user=cloud.admin)
    cloud.becomes_drain(drain, "done")
    assert cloud.row(drain, server)["state"] == "passed_over"


def test_a_user_who_deletes_it_meanwhile_wins(cloud: DrainsCloud, monkeypatch: pytest.MonkeyPatch) -> None:
    server = shelved(cloud, cloud.on(ONE))
    works = copies.write

    def write(*args: Any, **more: Any) -> None:
        monkeypatch.undo()
        cloud.member.compute.delete_server(server.id)
        works(*args, **more)

    monkeypatch.setattr(copies, "write", write)
    drain, _plan = planned(cloud)
    cloud.act(drain, "start")
    cloud.becomes_drain(drain, "done")
    until(lambda: cloud.admin.compute.find_server(server.id), lambda found: found is None, "it to go")
    cloud.settle()
    assert cloud.audit().disagreements == []


def test_nobody_else_begins_anything_while_its_records_move(
    cloud: DrainsCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = shelved(cloud, cloud.on(ONE))
    works, seen = copies.write, []

    def write(*args: Any, **more: Any) -> None:
        answer = cloud.member.compute.post(f"/servers/{server.id}/action", json={"unshelve": None}, microversion="2.93")
        seen.append((answer.status_code, cloud.record(server, "cell1").task_state))
        works(*args, **more)

    monkeypatch.setattr(copies, "write", write)
    drained(cloud)
    assert seen == [(409, TaskState.MIGRATING)]
    assert cell_of(cloud, server) == "cell2"
