"""Operations of the journal that are proposed: written down, and not accepted or refused yet (`causeway.parts.acceptance`)."""

from __future__ import annotations

import sqlalchemy as sa

from causeway.model.operations import Operation
from causeway.model.sagas import ENDED, SagaState
from causeway.store.api.journal import MOVES
from causeway.store.database import Database

_DONE_WITH = [state.value for state in (SagaState.REFUSED, *ENDED)]


def accept_in(connection: sa.Connection, operation_id: str) -> bool:
    """A proposed operation counts from here on; False if it is not proposed any more."""
    return _swap_state(connection, operation_id, SagaState.REQUESTED)


def refuse_in(connection: sa.Connection, operation_id: str) -> bool:
    """A proposed operation never counts; False if it is not proposed any more."""
    return _swap_state(connection, operation_id, SagaState.REFUSED)


def _swap_state(connection: sa.Connection, operation_id: str, state: SagaState) -> bool:
    proposed = MOVES.update().where(MOVES.c.id == operation_id, MOVES.c.state == SagaState.PROPOSED.value)
    return bool(connection.execute(proposed.values(state=state.value)).rowcount)


def state_in(connection: sa.Connection, operation_id: str) -> SagaState | None:
    """None if there is no such operation."""
    found = connection.execute(sa.select(MOVES.c.state).where(MOVES.c.id == operation_id)).scalar_one_or_none()
    return None if found is None else SagaState(found)


def has_others(database: Database, operation: Operation) -> bool:
    """Whether the server has another operation that has not ended and was not refused."""
    others = sa.exists().where(
        MOVES.c.instance_uuid == operation.instance_uuid,
        MOVES.c.id != operation.id,
        MOVES.c.state.not_in(_DONE_WITH),
    )
    with database.read() as connection:
        return bool(connection.execute(sa.select(others)).scalar_one())


def delete_in(connection: sa.Connection, operation_id: str) -> None:
    """Removes an operation that never counted (the request that made it was refused)."""
    connection.execute(MOVES.delete().where(MOVES.c.id == operation_id, MOVES.c.state == SagaState.REFUSED.value))
