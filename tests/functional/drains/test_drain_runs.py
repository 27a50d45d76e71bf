"""A drain empties hosts: by its plan and within its limits, and everything that users do meanwhile counts for more."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from causeway.drains import replanning, windows
from causeway.model.drains import (
    Afterwards,
    DrainServer,
    DrainServerState,
    How,
    Limits,
    Plan,
    Scope,
    Targets,
    Window,
)
from causeway.store.api import drains as store
from causeway.store.cell import instances
from causeway.store.database import utcnow

from .drains_cloud import CLOUD as CLOUD
from .drains_cloud import LIMITS, DrainsCloud, until

ONE, TWO = "cell1-host1", "cell1-host2"
THERE, ELSEWHERE = "cell2-host1", "cell2-host2"


def test_a_cell_is_emptied(cloud: DrainsCloud) -> None:
    live, warm, off, nearby = cloud.on(ONE), cloud.on(TWO), cloud.on(ONE, off=True), cloud.on(TWO)
    memory = cloud.remember(live, "a line")
    cloud.driver(ONE).guest_write(live.id, "on disk")
    drain = cloud.started(
        {
            live.id: (THERE, How.NEAR_LIVE),
            warm.id: (ELSEWHERE, How.WARM),
            off.id: (THERE, How.COLD),
            nearby.id: (None, None),
        },
        reason="The cell is returned.",
    )
    shown = cloud.becomes_drain(drain, "done")
    assert shown["progress"]["servers"] == {"done": 4}
    assert shown["note"] is None and shown["ended_at"]
    assert [cloud.host_of(each) for each in (live, warm, off)] == [THERE, ELSEWHERE, THERE]
    assert cloud.host_of(nearby) in (THERE, ELSEWHERE)
    assert [cloud.show(each).status for each in (live, warm, off, nearby)] == ["ACTIVE", "ACTIVE", "SHUTOFF", "ACTIVE"]
    assert cloud.memory(live) == memory
    assert "on disk" in cloud.driver(THERE).guest_read(live.id)
    assert all(cloud.moved_times(each) == 1 for each in (live, warm, off, nearby))
    row = cloud.row(drain, nearby)
    assert (row["state"], row["target_host"], row["why"]) == ("done", cloud.host_of(nearby), None)
    # What was closed stays closed, and says why.
    assert cloud.closed() == dict.fromkeys((ONE, TWO), f"Drain {drain} empties it.")
    assert shown["closed"] == [ONE, TWO]
    assert {move.reason for move in cloud.moves(warm)} == {"The cell is returned.", None}
    assert cloud.audit().disagreements == []
    # Its bytes are those that travelled, and not the size of disks that the flavors would allow.
    rows = store.servers(cloud.parts.api_database, drain)
    sent = store.bytes_sent(cloud.parts.api_database, {row.instance_uuid: row.request_id or "" for row in rows})
    assert {row.instance_uuid: row.bytes for row in rows} == sent
    assert shown["progress"]["bytes_done"] == sum(sent.values()) > 0


def test_a_host_is_emptied_live_inside_its_cell(cloud: DrainsCloud) -> None:
    server = cloud.on(ONE)
    memory = cloud.remember(server, "a line")
    drain = cloud.started({server.id: (TWO, How.LIVE)}, scope=Scope(hosts=[ONE]))
    cloud.becomes_drain(drain, "done")
    assert cloud.host_of(server) == TWO
    assert cloud.memory(server) == memory
    assert cloud.actions(server)[-1] == "live-migration"
    assert list(cloud.closed()) == [ONE]


def test_servers_get_the_flavors_that_they_are_mapped_to(cloud: DrainsCloud) -> None:
    server, other = cloud.on(ONE), cloud.on(ONE, flavor="any.medium")
    servers: dict[str, tuple[str | None, How | None]] = {
        server.id: (THERE, How.WARM),
        other.id: (THERE, How.WARM),
    }
    drain = cloud.started(servers, flavors={"any.small": "any.medium"}, scope=Scope(servers=[server.id, other.id]))
    cloud.becomes_drain(drain, "done")
    for each in (server, other):
        shown = cloud.show(each)
        assert (shown.compute_host, shown.flavor["original_name"]) == (THERE, "any.medium")
    # Servers were named, no places: nothing is closed.
    assert cloud.closed() == {}


def test_limits_are_kept_at_every_look(cloud: DrainsCloud) -> None:
    servers = [cloud.on(host) for host in (ONE, ONE, ONE, TWO)]
    seen = cloud.count_under_way()
    limits = Limits(total=2, per_source_host=1, per_target_host=2, per_cell_pair=2)
    drain = cloud.started({server.id: (THERE, How.WARM) for server in servers}, limits=limits)
    cloud.becomes_drain(drain, "done")
    assert max(len(rows) for rows in seen) == 2
    for rows in seen:
        assert len({row.source_host for row in rows}) == len(rows)


def test_limits_may_be_changed_while_it_runs(cloud: DrainsCloud) -> None:
    servers = [cloud.on(ONE) for _ in range(3)]
    seen = cloud.count_under_way()
    with cloud.held("begin_round"):
        drain = cloud.started({server.id: (THERE, How.WARM) for server in servers}, limits=Limits(total=1))
        cloud.sees(drain)
        assert cloud.states(drain) == {"asked": 1, "pending": 2}
        wanted = {"drain": {"limits": {"total": 3, "per_source_host": 3, "per_target_host": 3}}}
        answer = cloud.admin.compute.put(f"/os-causeway/drains/{drain}", json=wanted, microversion="2.1")
        assert answer.status_code == 200, answer.text
        until(lambda: cloud.states(drain), lambda states: states == {"asked": 3}, "all three to be asked for")
    cloud.becomes_drain(drain, "done")
    assert max(map(len, seen)) == 3


def test_a_drain_that_is_paused_begins_nothing_and_continues_when_it_is_resumed(cloud: DrainsCloud) -> None:
    servers = [cloud.on(ONE) for _ in range(2)]
    with cloud.held("begin_round") as reached:
        drain = cloud.started({server.id: (THERE, How.WARM) for server in servers}, limits=Limits(total=1))
        assert reached.wait(30)
        cloud.act(drain, "pause")
    until(lambda: cloud.states(drain), lambda states: states == {"moved": 1, "pending": 1}, "the first to be there")
    cloud.sees(drain)
    # It is not confirmed either: then there would be no way back.
    assert cloud.states(drain) == {"moved": 1, "pending": 1}
    cloud.act(drain, "resume")
    assert cloud.becomes_drain(drain, "done")["progress"]["servers"] == {"done": 2}


def test_nothing_begins_outside_of_its_windows(cloud: DrainsCloud, monkeypatch: pytest.MonkeyPatch) -> None:
    server = cloud.on(ONE)
    opened: list[bool] = []
    monkeypatch.setattr(windows, "is_open", lambda _windows, _now: bool(opened))
    # So far away that nothing is prepared for it yet.
    day = (utcnow().weekday() + 3) % 7
    drain = cloud.started({server.id: (THERE, How.WARM)}, windows=[Window([day], "00:00", "00:01")])
    cloud.sees(drain)
    assert cloud.states(drain) == {"pending": 1}
    # The hosts are closed all the same.
    assert list(cloud.closed()) == [ONE, TWO]
    opened.append(True)
    cloud.becomes_drain(drain, "done")


def test_a_closed_window_is_said(cloud: DrainsCloud) -> None:
    server = cloud.on(ONE)
    tomorrow = utcnow() + timedelta(days=1)
    drain = cloud.started(
        {server.id: (THERE, How.WARM)}, windows=[Window([tomorrow.weekday()], "12:00", "13:00", "UTC")]
    )
    note = until(lambda: cloud.shown(drain)["note"], bool, "a note")
    assert note == f"It waits for a window, which opens at {tomorrow:%Y-%m-%d} 12:00 UTC."
    assert cloud.states(drain) == {"pending": 1}


def test_a_drain_that_is_cancelled_lets_moves_end_and_opens_its_hosts(cloud: DrainsCloud) -> None:
    servers = [cloud.on(ONE) for _ in range(2)]
    cloud.admin.compute.disable_service(cloud.service(TWO), TWO, "nova-compute", "It is to be repaired.")
    with cloud.held("begin_round") as reached:
        drain = cloud.started({server.id: (THERE, How.WARM) for server in servers}, limits=Limits(total=1))
        assert reached.wait(30)
        assert cloud.closed() == {ONE: f"Drain {drain} empties it.", TWO: "It is to be repaired."}
        cloud.act(drain, "cancel", {"undo": False})
        cloud.sees(drain)
        assert cloud.shown(drain)["state"] == "cancelling"
    shown = cloud.becomes_drain(drain, "cancelled")
    assert shown["progress"]["servers"] == {"done": 1, "pending": 1}
    assert shown["closed"] == []
    # What an operator had disabled is none of its business.
    assert cloud.closed() == {TWO: "It is to be repaired."}
    assert sorted(map(cloud.host_of, servers)) == [ONE, THERE]


def test_what_is_under_way_is_undone_if_that_is_wanted(cloud: DrainsCloud) -> None:
    server = cloud.on(ONE)
    with cloud.held("begin_round") as reached:
        drain = cloud.started({server.id: (THERE, How.WARM)})
        assert reached.wait(30)
        cloud.act(drain, "cancel", {"undo": True})
        until(lambda: cloud.moves(server)[0].cancel_requested, bool, "its end to be asked for")
    shown = cloud.becomes_drain(drain, "cancelled")
    assert shown["progress"]["servers"] == {"pending": 1}
    assert cloud.host_of(server) == ONE
    assert cloud.closed() == {}
    assert cloud.audit().disagreements == []


def test_what_is_not_confirmed_is_reverted_when_a_drain_is_rolled_back(cloud: DrainsCloud) -> None:
    servers = [cloud.on(ONE), cloud.on(TWO, off=True), cloud.on(TWO)]
    drain = cloud.started(
        {server.id: (THERE, How.WARM) for server in servers}, afterwards=Afterwards.OWNERS, limits=LIMITS
    )
    shown = cloud.becomes_drain(drain, "done")
    assert shown["progress"]["servers"] == {"moved": 3}
    assert shown["note"] == "Servers that wait for their confirm: 3."
    cloud.confirmed(servers[2])
    cloud.act(drain, "rollback")
    shown = cloud.becomes_drain(drain, "rolled_back")
    assert shown["progress"]["servers"] == {"reverted": 2, "done": 1}
    assert [cloud.host_of(server) for server in servers] == [ONE, TWO, THERE]
    assert [cloud.show(server).status for server in servers] == ["ACTIVE", "SHUTOFF", "ACTIVE"]
    assert cloud.closed() == {}
    assert cloud.audit().disagreements == []


def test_confirms_may_come_later(cloud: DrainsCloud) -> None:
    server = cloud.on(ONE)
    drain = cloud.started({server.id: (THERE, How.WARM)}, afterwards=Afterwards.CONFIRM_LATER, confirm_after=0.0005)
    assert cloud.becomes_row(drain, server, "moved", "confirming", "done")
    cloud.becomes_drain(drain, "done")
    assert cloud.show(server).status == "ACTIVE"


def test_owners_may_confirm_or_revert_themselves(cloud: DrainsCloud) -> None:
    stays, returns = cloud.on(ONE), cloud.on(ONE)
    drain = cloud.started(
        {each.id: (THERE, How.WARM) for each in (stays, returns)},
        afterwards=Afterwards.CONFIRM_LATER,
        confirm_after=24.0,
    )
    for each in (stays, returns):
        cloud.becomes_row(drain, each, "moved")
    cloud.confirmed(stays)
    cloud.reverted(returns)
    shown = cloud.becomes_drain(drain, "done")
    assert shown["progress"]["servers"] == {"done": 1, "passed_over": 1}
    assert "reverted" in cloud.row(drain, returns)["why"]
    assert cloud.host_of(returns) == ONE


def test_what_users_do_meanwhile_wins(cloud: DrainsCloud) -> None:
    deleted, stopped, moved, resized = (cloud.on(ONE, name) for name in ("deleted", "stopped", "moved", "resized"))
    drain = cloud.drain({each.id: (THERE, How.NEAR_LIVE) for each in (deleted, stopped, moved, resized)})
    cloud.member.compute.delete_server(deleted.id)
    until(lambda: cloud.admin.compute.find_server(deleted.id), lambda found: found is None, "it to go")
    cloud.member.compute.stop_server(stopped.id)
    cloud.wait(stopped, "SHUTOFF")
    cloud.migrated(moved, host=ELSEWHERE)
    cloud.resized(resized, "any.medium")
    cloud.act(drain, "start")
    until(
        lambda: cloud.rows(drain),
        lambda rows: sorted(row["state"] for row in rows.values()) == ["blocked", "done", "passed_over", "passed_over"],
        "what can go to go",
    )
    assert cloud.row(drain, deleted)["why"] == "It was deleted."
    assert cloud.host_of(stopped) == THERE and cloud.show(stopped).status == "SHUTOFF"
    assert ELSEWHERE in cloud.row(drain, moved)["why"]
    waits = cloud.row(drain, resized)
    assert waits["why"] == "It waits for its owner to confirm or revert its resize."
    note = until(lambda: cloud.shown(drain)["note"], bool, "a note")
    assert note == f"Servers that can't go: 1. {waits['why']} (1)"
    assert cloud.shown(drain)["state"] == "running"
    cloud.reverted(resized)
    cloud.becomes_drain(drain, "done")
    assert cloud.host_of(resized) == THERE


def test_a_server_that_is_busy_waits_and_keeps_no_other_ones_place(cloud: DrainsCloud) -> None:
    # The larger one goes first.
    first, second = cloud.on(ONE, flavor="any.medium"), cloud.on(ONE)
    with cloud.held("upload_disk") as reached:
        cloud.member.compute.post(f"/servers/{first.id}/action", json={"createImage": {"name": "kept"}})
        assert reached.wait(30)
        drain = cloud.started({each.id: (THERE, How.WARM) for each in (first, second)}, limits=Limits(total=1))
        cloud.becomes_row(drain, second, "done")
        assert cloud.row(drain, first)["state"] == "pending"
    cloud.becomes_drain(drain, "done")
    assert cloud.host_of(first) == THERE


def test_a_move_that_fails_is_tried_again(cloud: DrainsCloud) -> None:
    server = cloud.on(ONE)
    cloud.without_patience()
    cloud.break_driver([THERE, ELSEWHERE], "spawn", times=1)
    drain = cloud.started({server.id: (THERE, How.WARM)}, retries=1)
    cloud.becomes_drain(drain, "done")
    row = cloud.row(drain, server)
    assert (row["state"], row["attempts"], row["why"]) == ("done", 1, None)
    assert cloud.moved_times(server) == 2


def test_a_drain_pauses_after_as_many_failures_as_it_may_have(cloud: DrainsCloud) -> None:
    servers = [cloud.on(ONE) for _ in range(3)]
    cloud.without_patience()
    cloud.break_driver([THERE, ELSEWHERE], "spawn")
    drain = cloud.started(
        {server.id: (THERE, How.WARM) for server in servers}, retries=0, stop_after=1, limits=Limits(total=1)
    )
    shown = cloud.becomes_drain(drain, "paused")
    assert "paused by itself" in shown["note"]
    until(lambda: cloud.states(drain), lambda states: states == {"failed": 1, "pending": 2}, "one to have failed")
    (failed,) = (row for row in cloud.rows(drain).values() if row["state"] == "failed")
    assert "broke in spawn" in failed["why"]
    cloud.heal()
    cloud.act(drain, "resume")
    shown = cloud.becomes_drain(drain, "done")
    assert shown["progress"]["servers"] == {"failed": 1, "done": 2}


def test_a_target_that_there_is_not_is_no_reason_to_try_again(cloud: DrainsCloud) -> None:
    server, other = cloud.on(ONE), cloud.on(ONE)
    drain = cloud.drain({server.id: (THERE, How.WARM), other.id: (THERE, How.WARM)})
    api = cloud.parts.api_database
    with api.write() as connection:
        rows = store.SERVERS
        connection.execute(rows.update().where(rows.c.instance_uuid == server.id).values(target_host="nowhere"))
    cloud.act(drain, "start")
    shown = cloud.becomes_drain(drain, "done")
    assert shown["progress"]["servers"] == {"failed": 1, "done": 1}
    assert "nowhere" in cloud.row(drain, server)["why"]


def test_a_server_that_is_built_into_its_scope_later_is_moved_too(cloud: DrainsCloud) -> None:
    server = cloud.on(ONE)
    drain = cloud.drain({server.id: (THERE, How.WARM)})
    late = cloud.on(TWO, "late")
    cloud.act(drain, "start")
    cloud.becomes_drain(drain, "done")
    assert cloud.host_of(late) in (THERE, ELSEWHERE)
    row = cloud.row(drain, late)
    assert (row["name"], row["state"], row["flavor"]) == ("late", "done", "any.small")


def test_servers_of_another_drain_are_left_to_it(cloud: DrainsCloud) -> None:
    mine, others = cloud.on(ONE), cloud.on(TWO)
    cloud.drain({others.id: (THERE, How.WARM)}, scope=Scope(hosts=[TWO]))
    drain = cloud.started({mine.id: (THERE, How.WARM)})
    cloud.becomes_drain(drain, "done")
    assert list(cloud.rows(drain)) == [mine.id]
    assert cloud.host_of(others) == TWO


def test_one_that_has_no_target_is_planned_again_if_targets_are_named(
    cloud: DrainsCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = cloud.on(ONE)
    ways: list[Any] = [DrainServerState.PENDING, DrainServerState.BLOCKED]
    asked: list[Any] = []

    def plan_of(_services: Any, _context: Any, request: Any) -> Plan:
        asked.append(request)
        state = ways.pop()
        planned = DrainServer(
            drain_id="",
            instance_uuid=server.id,
            state=state,
            how=How.WARM,
            target_host=ELSEWHERE,
            target_cell="cell2",
            why="There is no room." if state is DrainServerState.BLOCKED else None,
        )
        return Plan([planned], utcnow())

    monkeypatch.setattr(replanning, "plan_of", plan_of)
    drain = cloud.started({server.id: (None, None)}, targets=Targets(cells=["cell2"]))
    cloud.becomes_drain(drain, "done")
    assert cloud.host_of(server) == ELSEWHERE
    assert [request.scope.servers for request in asked] == [[server.id]] * 2 and ways == []


def planned(cloud: DrainsCloud, **request: Any) -> str:
    """The id of a drain that was planned by the API."""
    wanted = {"drain": {"name": "empty", "scope": {"cells": ["cell1"]}, **request}}
    answer = cloud.admin.compute.post("/os-causeway/drains", json=wanted, microversion="2.1")
    assert answer.status_code == 201, answer.text
    drain_id: str = answer.json()["drain"]["id"]
    return drain_id


def test_a_cell_is_emptied_by_the_planners_plan_and_within_its_limits(cloud: DrainsCloud) -> None:
    servers = [cloud.on(ONE), cloud.on(ONE, off=True), cloud.on(TWO)]
    seen = cloud.count_under_way()
    drain = planned(cloud, limits={"per_cell_pair": 1})
    cloud.act(drain, "start")
    shown = cloud.becomes_drain(drain, "done")
    assert shown["progress"]["servers"] == {"done": 3}
    assert all(cloud.host_of(server) in (THERE, ELSEWHERE) for server in servers)
    # The limit counts what the planner calls a cell as what a conductor found under way.
    assert max(map(len, seen)) == 1
    assert {(row["source_cell"], row["target_cell"]) for row in cloud.rows(drain).values()} == {("cell1", "cell2")}
    assert cloud.audit().disagreements == []


def test_one_that_the_planner_found_no_way_for_goes_when_there_is_one(cloud: DrainsCloud) -> None:
    # Its flavor wants a host of the first generation, and those are all in the cell.
    server = cloud.on(ONE, flavor="gen1.small")
    drain = planned(cloud)
    assert cloud.row(drain, server)["state"] == "blocked"
    cloud.act(drain, "start")
    cloud.sees(drain)
    row = cloud.row(drain, server)
    assert row["state"] == "blocked" and row["why"]
    assert cloud.shown(drain)["note"].startswith("Servers that can't go: 1.")
    cloud.act(drain, "cancel", {"undo": False})
    cloud.becomes_drain(drain, "cancelled")
    assert cloud.host_of(server) == ONE


def test_an_owner_may_ask_to_wait_after_it_was_planned(cloud: DrainsCloud) -> None:
    held, other, unclear = cloud.on(ONE), cloud.on(ONE), cloud.on(ONE)
    drain = cloud.drain({each.id: (THERE, How.WARM) for each in (held, other, unclear)})
    cloud.member.compute.set_server_metadata(held, **{"causeway:hold": "2999-01-01"})
    # Written before the API refused what is no date.
    instances.update(cloud.cell("cell1"), unclear.id, metadata={"causeway:hold": "soon"})
    cloud.act(drain, "start")
    cloud.becomes_row(drain, other, "done")
    cloud.becomes_row(drain, unclear, "blocked")
    row = until(lambda: cloud.row(drain, held), lambda found: found["why"], "it to be held")
    assert (row["state"], row["why"]) == ("pending", "Its owner asked to wait until 2999-01-01 00:00 UTC.")
    assert cloud.host_of(held) == ONE
    cloud.member.compute.delete_server_metadata(unclear, ["causeway:hold"])
    cloud.becomes_row(drain, unclear, "done")
