"""What is shown of moves beside their migrations: how far they have come, why they failed, why their hosts were chosen."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from causeway import errors
from causeway.model.sagas import ENDED, SagaState, percent, seconds_left
from causeway.store.api.journal import MOVES, STEPS
from causeway.store.database import Database

_ENDED = [state.value for state in ENDED]


def explanation(database: Database, move_id: str) -> dict[str, Any] | None:
    with database.read() as connection:
        found = connection.execute(sa.select(MOVES.c.explanation).where(MOVES.c.id == move_id)).scalar_one_or_none()
    return None if found is None else dict(found)


def failures(database: Database, migration_uuids: list[str]) -> dict[str, errors.CausewayError]:
    """migration -> why its move failed, for those that did. One statement; none if nothing is asked."""
    if not migration_uuids:
        return {}
    query = (
        sa.select(MOVES.c.migration_uuid, MOVES.c.error)
        .where(MOVES.c.migration_uuid.in_(migration_uuids), MOVES.c.state == SagaState.FAILED.value)
        .order_by(MOVES.c.started_at)
    )
    with database.read() as connection:
        return {row.migration_uuid: errors.from_wire(row.error) for row in connection.execute(query) if row.error}


@dataclass
class MoveProgress:
    """How far a move has come. Bytes are those of the step at hand, None if it moves none."""

    recipe: str
    state: SagaState
    step: str | None = None
    bytes_done: int | None = None
    bytes_total: int | None = None
    round: int | None = None
    seconds_left: int | None = None

    @property
    def percent(self) -> int | None:
        return percent(self.bytes_done, self.bytes_total)


def progress(database: Database, migration_uuids: list[str], now: datetime) -> dict[str, MoveProgress]:
    """migration -> how far its move has come, for those that are under way. One statement."""
    if not migration_uuids:
        return {}
    query = (
        sa.select(
            *(MOVES.c[name] for name in ("migration_uuid", "recipe", "state")),
            sa.func.coalesce(MOVES.c.step, STEPS.c.step).label("step"),
            *(STEPS.c[name] for name in ("bytes_done", "bytes_total", "round", "ended_at")),
            sa.func.coalesce(STEPS.c.bytes_since, STEPS.c.tried_at, STEPS.c.started_at).label("since"),
        )
        .select_from(MOVES.outerjoin(STEPS, STEPS.c.move_id == MOVES.c.id))
        .where(MOVES.c.migration_uuid.in_(migration_uuids), MOVES.c.state.not_in(_ENDED))
        .order_by(STEPS.c.sequence)
    )
    with database.read() as connection:
        return {
            row.migration_uuid: MoveProgress(
                row.recipe,
                SagaState(row.state),
                row.step,
                row.bytes_done,
                row.bytes_total,
                row.round,
                None if row.ended_at else seconds_left(row.bytes_done, row.bytes_total, row.since, now),
            )
            for row in connection.execute(query)
        }
