"""Drains in the database: who has one, and what may follow what."""

from __future__ import annotations

import uuid as uuids
from datetime import UTC, datetime

import pytest

from causeway import errors
from causeway.model.drains import Drain, DrainRequest, DrainServer, DrainServerState, DrainState, Scope, Window
from causeway.store.api import drains
from causeway.store.database import Database

LEASE = 1000.0


@pytest.fixture
def database(api: Database) -> Database:
    return api


def new(state: DrainState = DrainState.RUNNING) -> Drain:
    request = DrainRequest(
        "empty cell1",
        Scope(cells=["cell1"]),
        windows=[Window([5, 6], "22:00", "06:00", "Europe/Zurich")],
        deadline=datetime(2027, 3, 1, tzinfo=UTC),
    )
    return Drain(id=str(uuids.uuid4()), request=request, state=state)


def of(drain: Drain, count: int) -> list[DrainServer]:
    return [DrainServer(drain_id=drain.id, instance_uuid=str(uuids.uuid4())) for _ in range(count)]


def test_what_was_asked_for_is_read_as_it_was_written(database: Database) -> None:
    drain = new()
    servers = of(drain, 3)
    drains.create(database, drain, servers)
    assert drains.get(database, drain.id) == drain
    assert {each.instance_uuid for each in drains.servers(database, drain.id)} == {s.instance_uuid for s in servers}
    assert drains.progress(database, drain.id).servers == {DrainServerState.PENDING: 3}


def test_one_conductor_has_a_drain_until_its_lease_is_over(database: Database) -> None:
    drain = new()
    drains.create(database, drain, [])
    first = drains.acquire(database, drain.id, "one", LEASE)
    assert first is not None
    assert drains.acquire(database, drain.id, "two", LEASE) is None
    again = drains.acquire(database, drain.id, "one", -1.0)
    assert again is not None
    assert again.epoch == first.epoch
    second = drains.acquire(database, drain.id, "two", LEASE)
    assert second is not None
    with pytest.raises(errors.TakenOver):
        drains.change(database, first, note="late")
    drains.change(database, second, note="in time")
    assert drains.get(database, drain.id).note == "in time"


def test_a_former_owner_writes_nothing_of_its_servers(database: Database) -> None:
    drain = new()
    (server,) = servers = of(drain, 1)
    drains.create(database, drain, servers)
    first = drains.acquire(database, drain.id, "one", -1.0)
    second = drains.acquire(database, drain.id, "two", LEASE)
    assert first is not None
    assert second is not None
    with pytest.raises(errors.TakenOver):
        drains.change_server(database, first, server, state=DrainServerState.ASKED)
    drains.change_server(database, second, server, state=DrainServerState.ASKED, request_id="req-1")
    assert drains.servers(database, drain.id)[0].state is DrainServerState.ASKED


def test_what_is_released_is_anybodys(database: Database) -> None:
    drain = new()
    drains.create(database, drain, [])
    assert drains.acquire(database, drain.id, "one", LEASE) is not None
    drains.release(database, "one")
    assert drains.acquire(database, drain.id, "two", LEASE) is not None


@pytest.mark.parametrize("state", [DrainState.PLANNED, DrainState.DONE, DrainState.CANCELLED])
def test_nobody_works_on_what_is_at_rest(database: Database, state: DrainState) -> None:
    drain = new(state)
    drains.create(database, drain, [])
    assert drains.acquire(database, drain.id, "one", LEASE) is None


def test_states_follow_one_another_as_the_table_says(database: Database) -> None:
    drain = new(DrainState.PLANNED)
    drains.create(database, drain, [])
    with pytest.raises(errors.Conflict, match="is planned"):
        drains.transit(database, drain.id, DrainState.PAUSED)
    assert drains.transit(database, drain.id, DrainState.RUNNING).state is DrainState.RUNNING
    with pytest.raises(errors.NotFound):
        drains.transit(database, str(uuids.uuid4()), DrainState.RUNNING)


def test_a_server_is_in_one_drain_at_a_time(database: Database) -> None:
    first, second = new(), new()
    (server,) = of(first, 1)
    drains.create(database, first, [server])
    twin = DrainServer(drain_id=second.id, instance_uuid=server.instance_uuid)
    with pytest.raises(errors.Conflict, match=first.id):
        drains.create(database, second, [twin])
    with pytest.raises(errors.NotFound):
        drains.get(database, second.id)
    drains.transit(database, first.id, DrainState.CANCELLING)
    drains.transit(database, first.id, DrainState.CANCELLED)
    drains.create(database, second, [twin])


def test_pages_come_newest_first(database: Database) -> None:
    made = [new(state) for state in (DrainState.RUNNING, DrainState.DONE, DrainState.RUNNING)]
    for drain in made:
        drains.create(database, drain, of(drain, 2))
    newest = [drain.id for drain in reversed(made)]
    assert [each.id for each in drains.search(database)] == newest
    assert [each.id for each in drains.search(database, limit=1)] == newest[:1]
    assert [each.id for each in drains.search(database, marker=newest[0], limit=5)] == newest[1:]
    assert [each.id for each in drains.search(database, states=[DrainState.DONE])] == [made[1].id]
    first, second = drains.servers(database, made[0].id)
    assert drains.servers(database, made[0].id, marker=first.instance_uuid) == [second]


def test_limits_may_change_while_it_runs(database: Database) -> None:
    drain = new()
    drains.create(database, drain, [])
    owned = drains.acquire(database, drain.id, "one", LEASE)
    assert owned is not None
    drains.revise_limits(database, drain.id, {"total": 3})
    assert drains.get(database, drain.id).request.limits.total == 3


def test_bytes_count_when_a_server_has_arrived(database: Database) -> None:
    drain = new()
    servers = of(drain, 2)
    for server, size, state in zip(servers, (100, 20), (DrainServerState.MOVED, DrainServerState.ASKED), strict=True):
        server.bytes, server.state = size, state
    drains.create(database, drain, servers)
    progress = drains.progress(database, drain.id)
    assert (progress.bytes_done, progress.bytes_total) == (100, 120)


def test_only_what_is_at_rest_is_deleted(database: Database) -> None:
    drain = new()
    drains.create(database, drain, of(drain, 2))
    assert not drains.delete(database, drain.id)
    drains.transit(database, drain.id, DrainState.DONE)
    assert drains.delete(database, drain.id)
    with pytest.raises(errors.NotFound):
        drains.get(database, drain.id)
