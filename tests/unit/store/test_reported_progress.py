"""What computes report of transfers is written only into the step for which they were ordered, while it runs."""

from __future__ import annotations

import uuid as uuids
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from causeway import errors
from causeway.model.operations import Operation
from causeway.model.outcomes import MoveToken
from causeway.model.sagas import SagaState, StepPhase, StepRecord
from causeway.store import schema
from causeway.store.api import journal, ordered_moves
from causeway.store.database import Database, utcnow

TOKEN = MoveToken("operation", "operation", 2, "UploadDisk")
START = utcnow()


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(f"sqlite:///{tmp_path}/api.sqlite", "api")
    schema.sync(database, "api")
    yield database
    database.close()


def begin(database: Database, *, step: dict[str, Any] | None = None, **values: Any) -> None:
    """An operation of epoch 2 whose step runs."""
    given = {"recipe": "create_image", "epoch": 2, "state": SagaState.RUNNING} | values
    operation = Operation(id=TOKEN.move_id, migration_uuid=TOKEN.move_id, instance_uuid=str(uuids.uuid4()), **given)
    record = StepRecord(
        **{"step": TOKEN.step, "phase": StepPhase.DO, "sequence": 1, "epoch": 2, "started_at": START} | (step or {})
    )
    if operation.steps is not None:
        operation.steps.append(record)
    with database.write() as connection:
        journal.insert_in(connection, operation)
        if operation.steps is None:
            connection.execute(journal.STEPS.insert(), journal.STEP.to_row(record) | {"move_id": operation.id})


def bytes_of(database: Database) -> tuple[int | None, int | None]:
    (step,) = journal.steps(database, TOKEN.move_id)
    return step.bytes_done, step.bytes_total


def test_the_step_that_runs(database: Database) -> None:
    begin(database)
    ordered_moves.record_progress(database, TOKEN, 25, 100)
    assert bytes_of(database) == (25, 100)


@pytest.mark.parametrize(
    "step",
    [{"ended_at": START}, {"step": "EndImage"}, {"epoch": 3}],
    ids=["has ended", "is another one", "was taken over meanwhile"],
)
def test_a_step_that(database: Database, step: dict[str, Any]) -> None:
    begin(database, step=step)
    ordered_moves.record_progress(database, TOKEN, 25, 100)
    assert bytes_of(database) == (None, None)


@pytest.mark.parametrize(
    ("values", "refusal"),
    [
        ({"epoch": 3}, errors.TakenOver),
        ({"state": SagaState.UNDOING}, errors.TakenOver),
        ({"state": SagaState.DONE}, errors.TakenOver),
        ({"cancel_requested": True}, errors.Cancelled),
    ],
    ids=["another owner's", "undone", "ended", "cancelled"],
)
def test_an_operation_that_is(database: Database, values: dict[str, Any], refusal: type[errors.CausewayError]) -> None:
    begin(database, **values)
    with pytest.raises(refusal):
        ordered_moves.record_progress(database, TOKEN, 25, 100)
    assert bytes_of(database) == (None, None)


def test_an_operation_that_is_not_known(database: Database) -> None:
    with pytest.raises(errors.TakenOver):
        ordered_moves.record_progress(database, TOKEN, 25, 100)


def test_a_short_operation_has_no_bytes(database: Database) -> None:
    begin(database, recipe="build", steps=[])
    ordered_moves.record_progress(database, TOKEN, 25, 100)
    assert bytes_of(database) == (None, None)
    with database.read() as connection:
        assert connection.execute(sa.select(sa.func.count()).select_from(journal.STEPS)).scalar_one() == 0
