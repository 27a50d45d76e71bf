"""Counts moves that have not ended by state and step, in one statement."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from causeway.model.sagas import ENDED
from causeway.store.api_tables import Operations
from causeway.store.database import Database

OPERATIONS: sa.Table = Operations.__table__  # type: ignore[assignment]

_COUNTS = (
    sa.select(OPERATIONS.c.recipe, OPERATIONS.c.state, OPERATIONS.c.step, sa.func.count())
    .where(OPERATIONS.c.state.not_in([state.value for state in ENDED]))
    .group_by(OPERATIONS.c.recipe, OPERATIONS.c.state, OPERATIONS.c.step)
)


@dataclass(frozen=True)
class OperationCount:
    """``count`` operations of a recipe in a state, at the step that began last (None before the first)."""

    recipe: str
    state: str
    step: str | None
    count: int


def under_way(database: Database) -> list[OperationCount]:
    """Raises DatabaseFailed."""
    with database.read() as connection:
        return [OperationCount(*row) for row in connection.execute(_COUNTS)]
