"""What holds of leases in every kind of database; run on SQLite, PostgreSQL and MariaDB."""

from __future__ import annotations

import sys
import uuid as uuids
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from causeway.model.operations import Operation
from causeway.model.sagas import SagaState, StepPhase, StepRecord
from causeway.store import clock
from causeway.store.api import journal, recording
from causeway.store.database import Database, utcnow

ONE, OTHER = "ctl/one", "ctl/other"
MINUTE = 60.0


def put_clock_ahead(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """The host's clock is wrong by so many seconds, for whoever asks it."""

    def wrong() -> Any:
        return utcnow() + timedelta(seconds=seconds)

    for name, module in list(sys.modules.items()):
        if name.startswith("causeway.") and getattr(module, "utcnow", None) is utcnow:
            monkeypatch.setattr(module, "utcnow", wrong)


def new_move(database: Database) -> Operation:
    move = Operation(
        id=str(uuids.uuid4()),
        migration_uuid=str(uuids.uuid4()),
        instance_uuid=str(uuids.uuid4()),
        recipe="resize",
    )
    with database.write() as connection:
        journal.insert_in(connection, move)
    return journal.get(database, move.id)


def lease_of(database: Database, move: Operation) -> float:
    """Seconds that it has left."""
    until = journal.get(database, move.id).lease_until
    assert until is not None
    return (until - clock.read(database)).total_seconds()


def end_lease(database: Database, move: Operation) -> None:
    with database.write() as connection:
        over = (
            journal.OPERATIONS.update()
            .where(journal.OPERATIONS.c.id == move.id)
            .values(lease_until=clock.utc_now(-0.5))
        )
        connection.execute(over)


def abandoned(database: Database, owner: str, lease: float = MINUTE) -> list[str]:
    return [move.id for move in journal.abandoned(database, {owner}, lease, knowledge="-")]


def the_database_gives_the_time(database: Database) -> None:
    assert abs(clock.read(database) - utcnow()) < timedelta(seconds=5)
    with database.read() as connection:
        now, later, before = connection.execute(
            sa.select(clock.utc_now(), clock.utc_now(30.25), clock.utc_now(-30.25))
        ).one()
    assert timedelta(seconds=60) < later - before < timedelta(seconds=61) and before < now < later
    with database.read() as connection:
        fractions = {connection.execute(sa.select(clock.utc_now())).scalar_one().microsecond for _ in range(5)}
    assert fractions != {0}


def a_lease_is_as_long_as_it_says(database: Database) -> None:
    move = new_move(database)
    held = journal.acquire(database, move.id, ONE, MINUTE)
    assert held is not None and 50 < lease_of(database, move) <= MINUTE
    journal.renew(database, ONE, [move.id], 2 * MINUTE)
    assert 110 < lease_of(database, move) <= 2 * MINUTE
    journal.renew(database, OTHER, [move.id], 9 * MINUTE)
    assert lease_of(database, move) <= 2 * MINUTE
    held.state = SagaState.RUNNING
    step = StepRecord("SelectDestination", StepPhase.DO, 1, started_at=utcnow())
    recording.record(database, held, started=step, lease=3 * MINUTE)
    assert 170 < lease_of(database, move) <= 3 * MINUTE
    held.owner = None
    recording.record(database, held, lease=0.0)
    assert abandoned(database, OTHER) == [move.id]


def the_database_decides_whose_lease_is_over(
    database: Database, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    move = new_move(database)
    with monkeypatch.context() as patched:
        put_clock_ahead(patched, seconds)
        # Nobody but whoever is notified of it takes a move that was requested just now.
        assert abandoned(database, OTHER) == []
        held = journal.acquire(database, move.id, ONE, MINUTE)
        assert held is not None
        held.state = SagaState.RUNNING
        recording.record(database, held, lease=MINUTE)
    assert 50 < lease_of(database, move) <= MINUTE
    with monkeypatch.context() as patched:
        put_clock_ahead(patched, seconds)
        assert abandoned(database, OTHER) == []
        assert journal.acquire(database, move.id, OTHER, MINUTE) is None
    end_lease(database, move)
    with monkeypatch.context() as patched:
        put_clock_ahead(patched, -seconds)
        assert abandoned(database, OTHER) == [move.id]
        taken = journal.acquire(database, move.id, OTHER, MINUTE)
    assert taken is not None and taken.epoch == held.epoch + 1


def moves_of_former_lives_are_free_at_once(database: Database) -> None:
    move = new_move(database)
    held = journal.acquire(database, move.id, ONE, MINUTE)
    assert held is not None
    held.state = SagaState.RUNNING
    recording.record(database, held, lease=MINUTE)
    assert journal.acquire(database, move.id, OTHER, MINUTE) is None
    assert [each.id for each in journal.abandoned(database, {OTHER, ONE}, MINUTE, knowledge="-")] == [move.id]
    assert journal.abandoned(database, {OTHER, ONE}, MINUTE, at_work={move.id}, knowledge="-") == []
    assert journal.acquire(database, move.id, OTHER, MINUTE, former={ONE}) is not None


def what_must_wait_is_not_abandoned(database: Database) -> None:
    """A confirm that was asked for before its resize had ended: nobody can take it, so nobody is notified of it."""
    first = new_move(database)
    held = journal.acquire(database, first.id, ONE, MINUTE)
    assert held is not None
    held.state = SagaState.RUNNING
    recording.record(database, held, lease=MINUTE)
    second = Operation(
        id=str(uuids.uuid4()),
        migration_uuid=first.migration_uuid,
        instance_uuid=first.instance_uuid,
        recipe="confirm_resize",
    )
    with database.write() as connection:
        journal.insert_in(connection, second)
    end_lease(database, second)
    assert abandoned(database, OTHER, lease=0.0) == []
    held.state = SagaState.DONE
    recording.record(database, held)
    assert abandoned(database, OTHER, lease=0.0) == [second.id]
