"""Whatever users and administrators do with servers of a drain while it runs counts for more, and the drain takes notice."""

from __future__ import annotations

from typing import Any

from causeway.model.drains import Afterwards, How, Limits
from causeway.store.api import drains as store
from tests.functional.servers.moves_cloud import until

from .drains_cloud import CLOUD as CLOUD
from .drains_cloud import DrainsCloud

ONE, TWO = "cell1-host1", "cell1-host2"
THERE, ELSEWHERE = "cell2-host1", "cell2-host2"
WAITS: dict[str, Any] = {"afterwards": Afterwards.CONFIRM_LATER, "confirm_after": 24.0}


def gone(cloud: DrainsCloud, server: Any) -> None:
    until(lambda: cloud.admin.compute.find_server(server.id), lambda found: found is None, "it to go")


def test_a_server_that_is_deleted_while_it_moves_is_passed_over(cloud: DrainsCloud) -> None:
    server, other = cloud.on(ONE), cloud.on(TWO)
    with cloud.held("begin_round") as reached:
        drain = cloud.started({each.id: (THERE, How.WARM) for each in (server, other)}, limits=Limits(total=1))
        assert reached.wait(30)
        (moving,) = (uuid for uuid, row in cloud.rows(drain).items() if row["state"] == "asked")
        cloud.member.compute.delete_server(moving)
    shown = cloud.becomes_drain(drain, "done")
    assert shown["progress"]["servers"] == {"passed_over": 1, "done": 1}
    assert cloud.rows(drain)[moving]["why"] == "It was deleted."
    assert cloud.audit().disagreements == []


def test_a_server_that_is_deleted_before_its_confirm_is_passed_over(cloud: DrainsCloud) -> None:
    server = cloud.on(ONE)
    drain = cloud.started({server.id: (THERE, How.WARM)}, **WAITS)
    cloud.becomes_row(drain, server, "moved")
    cloud.member.compute.delete_server(server.id)
    gone(cloud, server)
    cloud.becomes_drain(drain, "done")
    row = cloud.row(drain, server)
    assert (row["state"], row["why"]) == ("passed_over", "It was deleted.")


def test_a_server_that_is_deleted_during_a_rollback_is_passed_over(cloud: DrainsCloud) -> None:
    server, other = cloud.on(ONE), cloud.on(TWO)
    drain = cloud.started({each.id: (THERE, How.WARM) for each in (server, other)}, **WAITS)
    for each in (server, other):
        cloud.becomes_row(drain, each, "moved")
    cloud.member.compute.delete_server(server.id)
    cloud.act(drain, "rollback")
    cloud.becomes_drain(drain, "rolled_back")
    assert cloud.states(drain) == {"passed_over": 1, "reverted": 1}


def test_a_move_that_an_administrator_ends_is_tried_again_later(cloud: DrainsCloud) -> None:
    server = cloud.on(ONE)
    with cloud.held("begin_round") as reached:
        drain = cloud.started({server.id: (THERE, How.WARM)})
        assert reached.wait(30)
        (move,) = cloud.moves(server)
        assert cloud.admin.compute.delete(f"/os-causeway/operations/{move.id}", microversion="2.1").status_code == 202
        until(lambda: cloud.moves(server)[0].cancel_requested, bool, "its end to be asked for")
    cloud.becomes_drain(drain, "done")
    assert cloud.row(drain, server)["attempts"] == 1
    assert cloud.host_of(server) in (THERE, ELSEWHERE)


def test_a_live_migration_by_an_administrator_is_left_alone(cloud: DrainsCloud) -> None:
    """It is under way when the drain begins, and goes where its administrator wants it."""
    server = cloud.on(ONE)
    with cloud.held("pre_live_migration") as reached:
        cloud.migrate_live(server, host=TWO)
        assert reached.wait(30)
        drain = cloud.started({server.id: (THERE, How.NEAR_LIVE)})
        cloud.sees(drain)
        assert cloud.states(drain) == {"pending": 1}
    cloud.becomes_drain(drain, "done")
    # It came to another host of the scope, from which it was moved away then.
    assert cloud.host_of(server) == THERE
    assert cloud.actions(server).count("live-migration") == 2


def test_one_that_its_user_stops_or_starts_meanwhile_goes_as_it_is(cloud: DrainsCloud) -> None:
    stopped, started = cloud.on(ONE), cloud.on(ONE, off=True)
    drain = cloud.drain({stopped.id: (THERE, How.NEAR_LIVE), started.id: (THERE, How.COLD)})
    cloud.member.compute.stop_server(stopped.id)
    cloud.member.compute.start_server(started.id)
    cloud.wait(stopped, "SHUTOFF")
    cloud.wait(started, "ACTIVE")
    cloud.act(drain, "start")
    cloud.becomes_drain(drain, "done")
    assert [cloud.show(each).status for each in (stopped, started)] == ["SHUTOFF", "ACTIVE"]
    assert [cloud.row(drain, each)["how"] for each in (stopped, started)] == ["cold", "warm"]


def test_one_that_its_user_resizes_waits_for_their_confirm_and_goes_then(cloud: DrainsCloud) -> None:
    server = cloud.on(ONE)
    cloud.resized(server, "any.medium")
    drain = cloud.started({server.id: (THERE, How.WARM)})
    cloud.becomes_row(drain, server, "blocked")
    host = cloud.host_of(server)
    cloud.confirmed(server)
    cloud.becomes_drain(drain, "done")
    row = cloud.row(drain, server)
    if host in (ONE, TWO):
        assert (row["state"], row["flavor"], cloud.host_of(server)) == ("done", "any.medium", THERE)
    else:
        assert (row["state"], cloud.host_of(server)) == ("passed_over", host)


def test_owners_confirm_after_a_drain_was_cancelled(cloud: DrainsCloud) -> None:
    server = cloud.on(ONE)
    drain = cloud.started({server.id: (THERE, How.WARM)}, **WAITS)
    cloud.becomes_row(drain, server, "moved")
    cloud.act(drain, "cancel")
    shown = cloud.becomes_drain(drain, "cancelled")
    # Nobody confirms it by themselves any more: that is said.
    assert shown["note"] == "Servers that wait for their confirm: 1."
    cloud.confirmed(server)
    cloud.act(drain, "rollback")
    cloud.becomes_drain(drain, "rolled_back")
    assert (cloud.states(drain), cloud.host_of(server)) == ({"done": 1}, THERE)


def test_what_has_arrived_is_confirmed_before_a_drain_that_confirms_is_cancelled(cloud: DrainsCloud) -> None:
    server = cloud.on(ONE)
    with cloud.held("begin_round") as reached:
        drain = cloud.started({server.id: (THERE, How.WARM)})
        assert reached.wait(30)
        cloud.act(drain, "pause")
    cloud.becomes_row(drain, server, "moved")
    cloud.act(drain, "cancel")
    cloud.becomes_drain(drain, "cancelled")
    assert (cloud.states(drain), cloud.show(server).status) == ({"done": 1}, "ACTIVE")


def test_a_hold_that_is_lifted_is_noticed(cloud: DrainsCloud) -> None:
    server = cloud.on(ONE)
    drain = cloud.drain({server.id: (THERE, How.WARM)})
    cloud.member.compute.set_server_metadata(server, **{"causeway:hold": "2999-01-01"})
    cloud.act(drain, "start")
    row = until(lambda: cloud.row(drain, server), lambda found: found["why"], "it to be held")
    assert row["why"] == "Its owner asked to wait until 2999-01-01 00:00 UTC."
    cloud.member.compute.set_server_metadata(server, **{"causeway:hold": "2998-02-03"})
    row = until(lambda: cloud.row(drain, server), lambda found: "2998-02-03" in found["why"], "its new date")
    assert row["not_before"] == "2998-02-03T00:00:00"
    cloud.member.compute.delete_server_metadata(server, ["causeway:hold"])
    cloud.becomes_drain(drain, "done")
    assert cloud.host_of(server) == THERE


def test_one_that_is_deleted_while_it_waits_for_its_day_is_passed_over(cloud: DrainsCloud) -> None:
    server = cloud.on(ONE)
    drain = cloud.drain({server.id: (THERE, How.WARM)})
    cloud.member.compute.set_server_metadata(server, **{"causeway:hold": "2999-01-01"})
    cloud.act(drain, "start")
    until(lambda: cloud.row(drain, server), lambda found: found["why"], "it to be held")
    cloud.member.compute.delete_server(server.id)
    cloud.becomes_drain(drain, "done")
    row = cloud.row(drain, server)
    assert (row["state"], row["why"]) == ("passed_over", "It was deleted.")


def test_a_hold_of_the_plan_that_is_lifted_is_noticed(cloud: DrainsCloud) -> None:
    server = cloud.on(ONE)
    cloud.member.compute.set_server_metadata(server, **{"causeway:hold": "2999-01-01"})
    wanted = {"drain": {"name": "empty", "scope": {"cells": ["cell1"]}, "targets": {"cells": ["cell2"]}}}
    answer = cloud.admin.compute.post("/os-causeway/drains", json=wanted, microversion="2.1").json()
    drain = answer["drain"]["id"]
    assert cloud.row(drain, server)["not_before"] == "2999-01-01T00:00:00"
    cloud.act(drain, "start")
    cloud.sees(drain)
    assert cloud.states(drain) == {"pending": 1}
    cloud.member.compute.delete_server_metadata(server, ["causeway:hold"])
    cloud.becomes_drain(drain, "done")


def test_limits_of_a_drain_that_has_ended_can_not_be_changed(cloud: DrainsCloud) -> None:
    drain = cloud.drain({})
    cloud.act(drain, "cancel")
    answer = cloud.admin.compute.put(
        f"/os-causeway/drains/{drain}", json={"drain": {"limits": {"total": 3}}}, microversion="2.1"
    )
    assert answer.status_code == 409
    assert answer.json()["conflictingRequest"]["message"] == (
        f"Drain {drain} is cancelled: its limits can't be changed any more."
    )


def test_a_cancel_of_one_that_was_never_started_ends_none_that_runs(cloud: DrainsCloud, monkeypatch: Any) -> None:
    """In between somebody else started it, and cancelled that: its hosts are to be opened first."""
    drain = cloud.drain({})
    works = store.transit

    def transit(database: Any, *args: Any, **kwargs: Any) -> Any:
        with database.write() as connection:
            connection.execute(store.DRAINS.update().values(state="cancelling", closed=[ONE]))
        monkeypatch.setattr(store, "transit", works)
        return works(database, *args, **kwargs)

    monkeypatch.setattr(store, "transit", transit)
    cloud.act(drain, "cancel", status=409)
    assert cloud.becomes_drain(drain, "cancelled")["closed"] == []
