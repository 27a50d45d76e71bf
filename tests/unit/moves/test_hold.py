"""Whether a move is still a conductor's own, after its machine was suspended or the journal answered late."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from causeway import errors
from causeway.context import RequestContext
from causeway.model.sagas import SagaState
from causeway.moves.move_run import Run
from causeway.operations.journal import OperationJournal
from causeway.sagas.clock import Clock
from causeway.sagas.environment import Environment
from causeway.store.api import journal, recording
from causeway.store.database import Database
from tests import lease_checks
from tests.unit.moves.remembered import MEMORY
from tests.unit.new_databases import new_database

LEASE = 30.0


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Database]:
    with new_database(tmp_path, "api") as database:
        yield database


class Suspended(Clock):
    seconds = 1000.0

    def boot(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> Suspended:
    return Suspended()


def acquired(api: Database, owner: str, clock: Suspended, operation_id: str | None = None) -> Run:
    move = journal.acquire(api, operation_id or lease_checks.new_move(api).id, owner, LEASE)
    assert move is not None
    move.data, move.state = MEMORY, SagaState.RUNNING
    options: Any = SimpleNamespace(lease=LEASE, journal_patience=0.0)
    life: Any = SimpleNamespace(owner=owner)
    environment = Environment(OperationJournal(api, LEASE), life, options, threading.Event(), clock)
    services: Any = SimpleNamespace(api=api)
    return Run(services, environment, RequestContext(overwrite=False), move, asked_at=clock.boot())


def test_after_a_suspend_the_journal_is_asked(api: Database, clock: Suspended) -> None:
    run = acquired(api, lease_checks.ONE, clock)
    run.save()
    lease_checks.end_lease(api, run.move)
    acquired(api, lease_checks.OTHER, clock, run.move.id).save()
    # Its lease was just renewed, as far as it knows.
    run.check_lease()
    clock.seconds += LEASE
    with pytest.raises(errors.TakenOver):
        run.check_lease()


def test_a_lease_counts_from_when_it_was_asked_for(
    api: Database, clock: Suspended, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer took as long as the lease: who believes in it would act while another has the move."""
    run = acquired(api, lease_checks.ONE, clock)
    record = recording.record

    def slow(*arguments: Any, **named: Any) -> None:
        record(*arguments, **named)
        clock.seconds += LEASE

    with monkeypatch.context() as patched:
        patched.setattr(recording, "record", slow)
        run.save()
    lease_checks.end_lease(api, run.move)
    acquired(api, lease_checks.OTHER, clock, run.move.id)
    with pytest.raises(errors.TakenOver):
        run.check_lease()
