"""Counts moves that have not ended by state and step, in one statement."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from causeway.model.sagas import ENDED
from causeway.store.api_tables import Moves, MoveSteps
from causeway.store.database import Database

MOVES: sa.Table = Moves.__table__  # type: ignore[assignment]
STEPS: sa.Table = MoveSteps.__table__  # type: ignore[assignment]

_LAST = sa.select(sa.func.max(STEPS.c.sequence)).where(STEPS.c.move_id == MOVES.c.id).correlate(MOVES).scalar_subquery()
_STEP = sa.func.coalesce(MOVES.c.step, STEPS.c.step)
_STANDING = (
    sa.select(MOVES.c.recipe, MOVES.c.state, _STEP, sa.func.count())
    .select_from(MOVES.outerjoin(STEPS, sa.and_(STEPS.c.move_id == MOVES.c.id, STEPS.c.sequence == _LAST)))
    .where(MOVES.c.state.not_in([state.value for state in ENDED]))
    .group_by(MOVES.c.recipe, MOVES.c.state, _STEP)
)


@dataclass(frozen=True)
class Standing:
    """``count`` moves of a recipe in a state, at the step that began last (None before the first)."""

    recipe: str
    state: str
    step: str | None
    count: int


def moves(database: Database) -> list[Standing]:
    """Raises DatabaseFailed."""
    with database.read() as connection:
        return [Standing(*row) for row in connection.execute(_STANDING)]
