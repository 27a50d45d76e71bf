"""A conductor that stops notifies the others of what it releases: nobody waits for a lease, or for a look at the journal."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from causeway.conductor.service import ConductorService
from causeway.embedded.cloud import EmbeddedCloud
from causeway.model.sagas import SagaState
from causeway.roles.conductor import make_conductor
from causeway.store.api import journal
from causeway.store.database import statements, utcnow
from tests.functional.servers.moves_cloud import PATIENCE, Cloud, until

pytestmark = pytest.mark.embedded("starts and stops conductors")


@pytest.fixture
def cloud(tmp_path: Path, put_state: Callable[[Path, int, int], None]) -> Iterator[Cloud]:
    """One worker for moves; a lease so long that a test that waits for a third of it fails."""
    put_state(tmp_path, 2, 1)
    embedded = EmbeddedCloud(tmp_path, port=0, overrides={"moves": {"lease": 10 * PATIENCE, "workers": 1}})
    embedded.start()
    yield Cloud(embedded)
    embedded.stop()


@pytest.fixture
def second(cloud: Cloud) -> Iterator[ConductorService]:
    """A conductor that is not started yet."""
    embedded = cloud.parts
    service = make_conductor(embedded.around, embedded.api_database, embedded.cells, "second")
    yield service
    service.stop()


def test_the_other_one_continues_at_once(cloud: Cloud, second: ConductorService) -> None:
    """With the move under way, and with the one that waited for a worker."""
    under_way, waiting = cloud.boot("under-way"), cloud.boot("waiting")
    first = cloud.parts.conductor
    with cloud.held("prep_snapshot_based_resize_at_source") as arrived:
        for server in (under_way, waiting):
            cloud.member.compute.resize_server(server.id, "gen2.small")
            assert arrived.wait(PATIENCE)
        until(lambda: len(first._keeper._at_work), lambda moves: moves == 2, "both moves to be worked on")
        second.start()
        second.recover()
        ending = threading.Thread(target=first.stop)
        ending.start()
    ending.join(PATIENCE)
    database = cloud.parts.api_database

    for server in (under_way, waiting):
        cloud.wait(server, "VERIFY_RESIZE")
        cloud.settle()
        (move,) = cloud.moves(server)
        assert (move.owner_host, move.state) == ("second", SagaState.DONE)
        steps = [step.step for step in journal.steps(database, move.id)]
        assert steps.count("HandOver") == 1


def test_moves_that_wait_for_a_worker_cost_one_statement_a_look(cloud: Cloud) -> None:
    """However many they are, and though all of them wait for longer than a lease."""
    servers = [cloud.boot(f"waiting-{number}") for number in range(4)]
    keeper = cloud.parts.conductor._keeper
    with cloud.held("prep_snapshot_based_resize_at_source") as arrived:
        for server in servers:
            cloud.member.compute.resize_server(server.id, "gen2.small")
            assert arrived.wait(PATIENCE)
        until(lambda: len(keeper._at_work), lambda moves: moves == 4, "all moves to be worked on")
        waiting = journal.OPERATIONS.c.state == SagaState.REQUESTED.value
        with cloud.parts.api_database.write() as connection:
            long_ago = journal.OPERATIONS.update().where(waiting).values(lease_until=utcnow() - timedelta(hours=1))
            assert connection.execute(long_ago).rowcount == 3
        statements.log = []
        keeper.take_over()
        sent = [sql for name, sql in statements.log if name == cloud.parts.api_database.name and "moves" in sql]
        statements.log = None
        assert len(sent) == 1 and sent[0].startswith("SELECT moves.id ")
    for server in servers:
        cloud.wait(server, "VERIFY_RESIZE")
