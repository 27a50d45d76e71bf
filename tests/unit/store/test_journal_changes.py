"""Of an operation's row the journal writes what changed, and all of it when it is not known what is there."""

from __future__ import annotations

import re
import uuid
from contextlib import contextmanager
from typing import Any

import pytest
import sqlalchemy as sa

from causeway import errors
from causeway.model.operations import Operation
from causeway.model.outcomes import FIRST_EPOCH
from causeway.model.sagas import SagaState, StepPhase, StepRecord
from causeway.store.api import journal, recording
from causeway.store.database import Database, statements, utcnow

LEASE = 60.0
STEP = StepRecord("SelectDestination", StepPhase.DO, 1, started_at=utcnow())


@pytest.fixture
def held(api: Database) -> Operation:
    new = str(uuid.uuid4())
    operation = Operation(id=new, migration_uuid=new, instance_uuid=str(uuid.uuid4()), recipe="resize", data={"a": 1})
    with api.write() as connection:
        journal.insert_in(connection, operation)
    found = journal.acquire(api, new, "host/1", LEASE, by_first_write=True)
    assert found is not None
    # Hosts rely on it: in this epoch they write nothing before the work of an order.
    assert found.epoch == FIRST_EPOCH
    found.state = SagaState.RUNNING
    recording.record(api, found, started=STEP, takes=True, lease=LEASE)
    return found


def written(monkeypatch: pytest.MonkeyPatch, api: Database, held: Operation, **options: Any) -> set[str]:
    """The columns that a `record` sets."""
    with monkeypatch.context() as patched:
        patched.setattr(statements, "log", [])
        recording.record(api, held, lease=LEASE, **options)
        (update,) = [text for _name, text in statements.log or [] if text.startswith("UPDATE moves")]
    return set(re.findall(r"(\w+)=", update.split(" WHERE ")[0]))


def test_only_what_changed_is_written(monkeypatch: pytest.MonkeyPatch, api: Database, held: Operation) -> None:
    assert written(monkeypatch, api, held) == {"lease_until"}
    held.data, held.error = {"a": 2}, {"code": "x"}
    assert written(monkeypatch, api, held) == {"lease_until", "data", "error"}
    found = journal.get(api, held.id)
    assert (found.data, found.error, found.owner, found.state) == ({"a": 2}, {"code": "x"}, "host/1", "running")


def test_everything_is_written_after_a_failure_whose_outcome_is_unknown(
    monkeypatch: pytest.MonkeyPatch, api: Database, held: Operation
) -> None:
    """The write took effect; what it wrote is undone by the next one, although that was there before."""
    works = Database.write

    def loses_the_answer(self: Database) -> Any:
        with works(self) as connection:
            yield connection
        raise errors.DatabaseFailed("The answer was lost.")

    held.error = {"code": "x"}
    with monkeypatch.context() as patched:
        patched.setattr(Database, "write", contextmanager(loses_the_answer))
        with pytest.raises(errors.DatabaseFailed):
            recording.record(api, held, lease=LEASE)
    assert journal.get(api, held.id).error == {"code": "x"}
    held.error = None
    recording.record(api, held, lease=LEASE)
    assert journal.get(api, held.id).error is None


def test_what_was_recorded_though_its_answer_was_lost_is_known(api: Database, held: Operation) -> None:
    held.data, held.error = {"a": 2}, {"code": "x"}
    recording.record(api, held, lease=LEASE)
    held.written = None
    assert recording.is_recorded(api, held)
    held.error = None
    recording.record(api, held, lease=LEASE)
    assert journal.get(api, held.id).error is None


def test_why_a_destination_was_chosen_is_written_once(
    monkeypatch: pytest.MonkeyPatch, api: Database, held: Operation
) -> None:
    held.explanation = {"hosts": []}
    assert "explanation" in written(monkeypatch, api, held)
    assert "explanation" not in written(monkeypatch, api, held)
    with api.read() as connection:
        assert connection.scalar(sa.select(journal.OPERATIONS.c.explanation)) == {"hosts": []}
    assert journal.get(api, held.id).explanation is None
