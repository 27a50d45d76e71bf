"""Proposed operations: they are in the journal, and neither accepted nor refused (`causeway.requests.acceptance`)."""

from __future__ import annotations

import sqlalchemy as sa

from causeway.model.operations import Operation
from causeway.model.sagas import ENDED, SagaState
from causeway.store.api.journal import OPERATIONS
from causeway.store.database import Database

_DONE_WITH = [state.value for state in (SagaState.REFUSED, *ENDED)]


def accept_in(connection: sa.Connection, operation_id: str) -> bool:
    """Accepts a proposed operation. Returns False if it is no longer proposed."""
    return _swap_state(connection, operation_id, SagaState.REQUESTED)


def refuse_in(connection: sa.Connection, operation_id: str) -> bool:
    """Refuses a proposed operation. Returns False if it is no longer proposed."""
    return _swap_state(connection, operation_id, SagaState.REFUSED)


def _swap_state(connection: sa.Connection, operation_id: str, state: SagaState) -> bool:
    proposed = OPERATIONS.update().where(
        OPERATIONS.c.id == operation_id, OPERATIONS.c.state == SagaState.PROPOSED.value
    )
    return bool(connection.execute(proposed.values(state=state.value)).rowcount)


def state_in(connection: sa.Connection, operation_id: str) -> SagaState | None:
    """The state of an operation; None if it does not exist."""
    found = connection.execute(
        sa.select(OPERATIONS.c.state).where(OPERATIONS.c.id == operation_id)
    ).scalar_one_or_none()
    return None if found is None else SagaState(found)


def has_others(database: Database, operation: Operation, *, of_request: bool = False) -> bool:
    """Whether the server has another operation that has not ended and was not refused; ``of_request``: of the same request."""
    others = sa.exists().where(
        OPERATIONS.c.instance_uuid == operation.instance_uuid,
        OPERATIONS.c.id != operation.id,
        OPERATIONS.c.state.not_in(_DONE_WITH),
        *([OPERATIONS.c.request_id == operation.request_id] if of_request else []),
    )
    with database.read() as connection:
        return bool(connection.execute(sa.select(others)).scalar_one())


def delete_in(connection: sa.Connection, operation_id: str) -> None:
    """Deletes an operation whose request was refused."""
    connection.execute(
        OPERATIONS.delete().where(OPERATIONS.c.id == operation_id, OPERATIONS.c.state == SagaState.REFUSED.value)
    )
