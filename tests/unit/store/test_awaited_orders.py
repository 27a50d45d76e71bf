"""Whether an operation still waits for the answer to an order: the scheduler looks at this before it carries a late one out."""

from __future__ import annotations

import pytest

from causeway.model.operations import Operation
from causeway.model.orders import Awaited, Order
from causeway.model.sagas import SagaState, StepPhase, StepRecord, StepState
from causeway.store.api import journal, mappings, wanted_operations
from causeway.store.database import Database, utcnow

ORDER = Order("operation", epoch=2, sequence=1, attempt=3, sent_at=0.0)


@pytest.fixture
def operation(api: Database) -> Operation:
    """It has sent the order and waits."""
    step = StepRecord("ChooseHost", StepPhase.DO, 1, attempt=3)
    found = Operation(
        id="operation",
        migration_uuid="operation",
        instance_uuid="server",
        recipe="build",
        state=SagaState.RUNNING,
        epoch=2,
        steps=[step],
    )
    with api.write() as connection:
        mappings.insert_in(connection, mappings.InstanceMapping("server", "project", "user", utcnow()))
        journal.insert_in(connection, found)
    return found


def change(api: Database, **values: object) -> None:
    with api.write() as connection:
        connection.execute(journal.OPERATIONS.update().values(**values))


def steps(*records: StepRecord) -> list[object]:
    found: list[object] = journal.OPERATION.to_value("steps", list(records))
    return found


def do(state: StepState = StepState.STARTED, attempt: int = 3, sequence: int = 1) -> StepRecord:
    return StepRecord("ChooseHost", StepPhase.DO, sequence, state, attempt)


@pytest.mark.usefixtures("operation")
def test_the_attempt_that_sent_it_waits(api: Database) -> None:
    assert wanted_operations.awaited(api, ORDER) is Awaited.YES


@pytest.mark.usefixtures("operation")
@pytest.mark.parametrize(
    ("values", "awaited"),
    [
        ({"epoch": 3}, Awaited.BY_A_LATER_ATTEMPT),
        ({"steps": steps(do(attempt=4))}, Awaited.BY_A_LATER_ATTEMPT),
        ({"steps": steps(do(StepState.FAILED))}, Awaited.BY_A_LATER_ATTEMPT),
        ({"steps": steps(do(StepState.DONE), do(attempt=1, sequence=2))}, Awaited.BY_A_LATER_ATTEMPT),
        ({"steps": []}, Awaited.BY_A_LATER_ATTEMPT),
        ({"cancel_requested": True}, Awaited.NO),
        ({"state": "undoing"}, Awaited.NO),
        ({"state": "stuck", "steps": steps(do(), StepRecord("ChooseHost", StepPhase.UNDO, 2))}, Awaited.NO),
        ({"state": "failed"}, Awaited.NO),
        ({"state": "done"}, Awaited.NO),
    ],
)
def test_another_attempt_waits_or_nobody(api: Database, values: dict[str, object], awaited: Awaited) -> None:
    change(api, **values)
    assert wanted_operations.awaited(api, ORDER) is awaited


@pytest.mark.usefixtures("operation")
def test_nobody_waits_while_the_server_is_deleted_or_when_the_journal_was_archived(api: Database) -> None:
    mappings.queue_for_delete(api, "server")
    assert wanted_operations.awaited(api, ORDER) is Awaited.NO
    mappings.queue_for_delete(api, "server", queued=False)
    with api.write() as connection:
        connection.execute(journal.OPERATIONS.delete())
    assert wanted_operations.awaited(api, ORDER) is Awaited.NO
