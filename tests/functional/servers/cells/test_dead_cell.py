"""A cell whose database or queue hangs: what conductors do from time to time continues for all other cells."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from causeway import errors
from causeway.conductor.endpoints import operations as callers
from causeway.conductor.service import ConductorService
from causeway.conductor.upkeep import auto_confirm, auto_offload
from causeway.hosts import cleanups
from causeway.model.missed import Missed
from causeway.requests import acceptance
from causeway.roles.conductor import make_conductor
from causeway.rpc.server import RpcServer
from causeway.store.api import cleanups as noted
from causeway.store.api import journal, migrations
from causeway.store.database import Database, utcnow
from tests.functional.servers.moves_cloud import PATIENCE, Cloud, until

pytestmark = pytest.mark.embedded("makes databases and queues of its process hang")
CLOUD = {"overrides": {"moves": {"lease": 1.0}, "conductor": {"recovery_interval": 2}}}


class Hang:
    """The database of one cell does not answer, until `end`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, cell: str) -> None:
        self.asked, self._back = threading.Event(), threading.Event()
        for name in ("read", "write", "ping_anew"):
            monkeypatch.setattr(Database, name, self._hanging(getattr(Database, name), cell))

    def _hanging(self, work: Any, cell: str) -> Any:
        def ask(database: Database) -> Any:
            if database.name == cell and not self._back.is_set():
                self.asked.set()
                self._back.wait(2 * PATIENCE)
                raise errors.DatabaseFailed("It did not answer.")
            return work(database)

        return ask

    def end(self) -> None:
        self._back.set()


@pytest.fixture
def cell1_hangs(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    hangs: list[Hang] = []

    def begin() -> Hang:
        hangs.append(Hang(monkeypatch, "cell1"))
        return hangs[-1]

    yield begin
    for hang in hangs:
        hang.end()
    cells = cloud.parts.cells
    until(lambda: all(cells.answers(cell.uuid) for cell in cells.mappings()), bool, "all cells to answer again")


@pytest.fixture
def services(cloud: Cloud) -> Any:
    return cloud.parts.conductor._services


def left_behind(cloud: Cloud, server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A migration whose API died before it counted; so long ago that conductors look whether it is to be taken out."""
    with monkeypatch.context() as patched:
        patched.setattr(migrations, "insert_in", lambda *_, **__: die())
        answer = cloud.admin.compute.post(f"/servers/{server.id}/action", json={"migrate": None})
        assert answer.status_code == 500
    move = cloud.moves(server)[-1]
    with cloud.parts.api_database.write() as connection:
        table = journal.OPERATIONS
        old = {"lease_until": utcnow() - timedelta(hours=1)}
        connection.execute(table.update().where(table.c.id == move.id).values(old))


def die() -> None:
    raise RuntimeError("the API died here")


@pytest.mark.expects_errors("action failed unexpectedly")
def test_requests_of_other_cells_are_taken_up(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a request left can't be looked for in one of the cells; in the other one it is undone all the same."""
    one, two = cloud.boot(), cloud.boot(flavor="gen2.small")
    back, asked, taken = threading.Event(), threading.Event(), threading.Event()
    delete = acceptance.delete_if_refused

    def ask(api: Any, cells: Any, move: Any, discard: Any) -> bool:
        if move.instance_uuid == one.id and not back.is_set():
            asked.set()
            back.wait(2 * PATIENCE)
            raise errors.DatabaseFailed("It did not answer.")
        if move.instance_uuid == two.id:
            taken.set()
        return delete(api, cells, move, discard)

    monkeypatch.setattr(callers, "delete_if_refused", ask)
    left_behind(cloud, one, monkeypatch)
    assert asked.wait(PATIENCE)
    left_behind(cloud, two, monkeypatch)
    assert taken.wait(PATIENCE)
    cloud.wait(two, "ACTIVE")
    back.set()
    cloud.wait(one, "ACTIVE")


def test_servers_of_other_cells_are_confirmed_and_offloaded(
    cloud: Cloud, services: Any, cell1_hangs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = cloud.boot(), cloud.boot(flavor="gen2.small")
    for server in (one, two):
        cloud.admin.compute.migrate_server(server.id)
    one, two = cloud.wait(one, "VERIFY_RESIZE"), cloud.wait(two, "VERIFY_RESIZE")
    assert one.compute_host.startswith("cell1") and two.compute_host.startswith("cell2")
    monkeypatch.setattr(services.cells, "timeout", 0.5)
    cell1_hangs()
    cloud.option("resize_confirm_window", 1)
    conductor = cloud.parts.conductor._conductor
    confirm = partial(auto_confirm.AutoConfirm(), services, conductor)

    def confirmed() -> bool:
        confirm()
        return all(each.ended_at for each in cloud.moves(two)) and (len(cloud.moves(two)) == 2)

    until(confirmed, bool, "the other cell's server to be confirmed")
    auto_offload.offload_shelved(services, conductor)


def test_hosts_of_other_cells_are_cleaned(
    cloud: Cloud, services: Any, cell1_hangs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From time to time, by every conductor."""
    cells = {cell.name: cell.uuid for cell in services.cells.mappings()}
    records = [cloud.record(cloud.boot(), "cell1"), cloud.record(cloud.boot(flavor="gen2.small"), "cell2")]
    for record in records:
        cloud.member.compute.delete_server(record.uuid)
    until(lambda: list(cloud.member.compute.servers()), lambda found: not found, "the servers to go")
    monkeypatch.setattr(services.cells, "timeout", 0.5)
    cell1_hangs()
    for cell, record in zip(("cell1", "cell2"), records, strict=True):
        cleanups.note(services, f"{cell}-host1", cells[cell], Missed.DESTROY, record, [])
    until(
        lambda: [found.host for found in noted.listed(services.api)],
        lambda hosts: hosts == ["cell1-host1"],
        "the other cell's host to be clean",
    )


def test_a_conductor_starts_and_looks_while_a_cell_is_dead(
    cloud: Cloud, cell1_hangs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its database hangs, and so does its queue."""
    parts, back, start = cloud.parts, threading.Event(), RpcServer.start
    cell1 = next(cell for cell in parts.cells.mappings() if cell.name == "cell1")
    monkeypatch.setattr(parts.cells, "timeout", 0.5)
    monkeypatch.setattr("causeway.conductor.cells.cell_queues.PATIENCE", 0.5)
    dead_queue = parts.around.transports.get(cell1.transport_url).messaging
    started: list[str] = []

    def slow(server: RpcServer) -> None:
        if server._server.transport is dead_queue:
            back.wait(2 * PATIENCE)
        else:
            started.append(server.topic)
        start(server)

    monkeypatch.setattr(RpcServer, "start", slow)
    cell1_hangs()
    other: ConductorService = make_conductor(parts.around, parts.api_database, parts.cells, "other")
    other.start()
    other.recover(alone=False)
    other._recovery.look()
    expected = ["cell_conductor", "conductor", "super_conductor"]
    # Whatever does not answer in time is listened to as soon as it does.
    until(lambda: sorted(started), lambda found: found == expected, "all but the dead queue to be listened to")
    back.set()
    other.stop()
