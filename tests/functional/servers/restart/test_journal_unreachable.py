"""The API database, in which the journal of moves is, or the cloud's queue is unreachable in the middle of a move."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest

from causeway import errors
from causeway.conductor.upkeep.periodic import Periodic
from causeway.model.operations import Operation
from causeway.model.sagas import SagaState
from causeway.rpc.conductor import ConductorClient
from causeway.sagas import late, run
from causeway.sagas.clock import Clock
from causeway.store.api import journal, recording
from causeway.store.database import utcnow
from tests.functional.servers.moves_cloud import Cloud, until

CLOUD = {"overrides": {"moves": {"lease": 1.0}}}
AWAY = "The database of the API did not do what it was asked to."


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "FIRST_PAUSE", 0.01)


class Journal:
    """Every ``every``-th write fails, several times over: before it is carried out, or after."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, every: int, times: int, *, lost_answer: bool) -> None:
        self._record = recording.record
        self._every, self._times, self._lost_answer = every, times, lost_answer
        self._writes = self._left = 0
        self.failures = 0
        monkeypatch.setattr(recording, "record", self.record)

    def record(self, database: Any, move: Operation, **fields: Any) -> None:
        if not self._left:
            self._writes += 1
            self._left = self._times if self._writes % self._every == 0 else 0
            if not self._left:
                self._record(database, move, **fields)
                return
            if self._lost_answer:
                self._record(database, move, **fields)
                self._left = 0
                self._fail()
        self._left -= 1
        self._fail()

    def _fail(self) -> None:
        self.failures += 1
        raise errors.DatabaseFailed(AWAY)


def steps_of(cloud: Cloud, server: Any) -> list[str]:
    """The steps of the server's last resize, each with its attempts."""
    move = next(
        move for move in journal.of_server(cloud.parts.api_database, server.id)[::-1] if "resize" in move.recipe
    )
    assert move.state is SagaState.DONE
    return [f"{step.step}.{step.phase}" for step in journal.steps(cloud.parts.api_database, move.id)]


@pytest.mark.parametrize("lost_answer", [False, True], ids=["not carried out", "answer lost"])
def test_a_move_waits_for_its_journal_and_does_nothing_twice(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, lost_answer: bool
) -> None:
    server = cloud.boot()
    moved = cloud.resized(server)
    cloud.settle()
    expected = steps_of(cloud, moved)
    cloud.reverted(server)
    failing = Journal(monkeypatch, 1 if lost_answer else 2, 3, lost_answer=lost_answer)
    moved = cloud.resized(server)
    cloud.settle()
    assert failing.failures > len(expected)
    assert steps_of(cloud, moved) == expected
    assert cloud.confirmed(server).status == "ACTIVE"
    assert cloud.cleanups(server, "cell1") == []


def test_a_move_whose_conductor_lost_patience_continues_from_what_the_journal_says(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = cloud.boot()
    before = cloud.reality(server)
    cloud.option("journal_patience", 0.0, "moves")
    failing = Journal(monkeypatch, 5, 1, lost_answer=False)
    moved = cloud.resized(server)
    cloud.settle()
    assert failing.failures and moved.compute_host.startswith("cell2")
    monkeypatch.undo()
    cloud.reverted(server)
    assert cloud.reality(server) == before


def test_nobody_takes_a_move_whose_owner_could_not_renew_its_lease(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the journal was unavailable nobody could."""
    keeper = cloud.parts.conductor._keeper
    theirs = Operation(
        id="11111111-1111-1111-1111-111111111111",
        migration_uuid="m",
        instance_uuid="s",
        recipe="resize",
        state=SagaState.RUNNING,
    )
    theirs.owner, theirs.lease_until = "another", utcnow() - timedelta(seconds=1)
    taken: list[str] = []
    monkeypatch.setattr(journal, "abandoned", lambda *_, **__: [theirs])
    monkeypatch.setattr(keeper, "submit", lambda _context, operation_id: taken.append(operation_id))
    renew = journal.renew

    def away(*_: Any) -> None:
        raise errors.DatabaseFailed(AWAY)

    monkeypatch.setattr(journal, "renew", away)
    until(lambda: keeper._blind_until > Clock().boot(), bool, "the keeper to find its journal away")
    taken.clear()
    keeper.take_over()
    assert taken == []
    monkeypatch.setattr(journal, "renew", renew)
    until(lambda: taken, bool, "the keeper to take what nobody renews")


@pytest.mark.expects_errors("look failed unexpectedly")
def test_a_look_that_fails_unexpectedly_is_not_the_last_one() -> None:
    stopping, looks = threading.Event(), list[Any]()

    def look() -> None:
        looks.append(len(looks))
        if len(looks) == 3:
            stopping.set()
        raise ValueError("something that nobody thought of")

    periodic = Periodic("look", 0.01, look, stopping)
    periodic.start()
    periodic.stop()
    assert looks == [0, 1, 2]


@pytest.mark.parametrize("verb", ["confirmed", "reverted"])
def test_what_was_asked_for_while_the_queue_was_unavailable_is_found_in_the_journal(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    """The request is accepted: the move is written down, and whoever looks at the journal continues with it."""
    reported = []

    def away(_conductor: Any, _context: Any, *, move_id: str) -> None:
        reported.append(move_id)
        raise errors.ServiceFailed("The message queue did not take the request run_move.")

    monkeypatch.setattr(ConductorClient, "run_move", away)
    server = cloud.resized(cloud.boot())
    assert getattr(cloud, verb)(server).status == "ACTIVE"
    assert len(reported) >= 2


def test_who_only_lost_the_answer_to_a_commit_waits_for_nobody(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pivot took effect, and its conductor does not know: no other one has the move, so it looks and continues."""
    record, lost = recording.record, list[str]()

    def lose(database: Any, move: Operation, **fields: Any) -> None:
        record(database, move, **fields)
        if move.pivoted and not lost:
            lost.append(move.id)
            raise errors.DatabaseFailed(AWAY)

    # Who waited for the end of the move would wait for ever.
    monkeypatch.setattr(late, "PATIENCE", 1e9)
    monkeypatch.setattr(recording, "record", lose)
    cloud.option("journal_patience", 0.0, "moves")
    server = cloud.resized(cloud.boot())
    assert lost
    cloud.settle()
    assert not cloud.parts.conductor._keeper.is_busy
    assert journal.get(cloud.parts.api_database, lost[0]).state is SagaState.DONE
    assert cloud.confirmed(server).status == "ACTIVE"
