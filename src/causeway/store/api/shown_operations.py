"""What is shown of moves beside their migrations: progress, failures, and why their hosts were chosen."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec
import sqlalchemy as sa

from causeway import errors
from causeway.model.sagas import ENDED, SagaState, StepRecord, percent
from causeway.store.api.journal import OPERATIONS
from causeway.store.api.ordered_operations import IS_OF_OPERATION, PROGRESS, REPORTED
from causeway.store.database import Database

_ENDED = [state.value for state in ENDED]


def explanation(database: Database, operation_id: str) -> dict[str, Any] | None:
    with database.read() as connection:
        query = sa.select(OPERATIONS.c.explanation).where(OPERATIONS.c.id == operation_id)
        found = connection.execute(query).scalar_one_or_none()
    return None if found is None else dict(found)


def failures(database: Database, migration_uuids: list[str]) -> dict[str, errors.CausewayError]:
    """migration -> why its move failed, for those that did. One statement, or none without migrations."""
    if not migration_uuids:
        return {}
    query = (
        sa.select(OPERATIONS.c.migration_uuid, OPERATIONS.c.error)
        .where(OPERATIONS.c.migration_uuid.in_(migration_uuids), OPERATIONS.c.state == SagaState.FAILED.value)
        .order_by(OPERATIONS.c.started_at)
    )
    with database.read() as connection:
        return {row.migration_uuid: errors.from_wire(row.error) for row in connection.execute(query) if row.error}


@dataclass
class OperationProgress:
    """The progress of a move. Bytes are those of the present step; None if it transfers nothing."""

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


def progress(database: Database, migration_uuids: list[str], now: datetime) -> dict[str, OperationProgress]:
    """migration -> the progress of its move, for those under way. One statement."""
    if not migration_uuids:
        return {}
    query = (
        sa.select(*(OPERATIONS.c[name] for name in ("migration_uuid", "recipe", "state", "steps")), *REPORTED)
        .select_from(OPERATIONS.outerjoin(PROGRESS, IS_OF_OPERATION))
        .where(OPERATIONS.c.migration_uuid.in_(migration_uuids), OPERATIONS.c.state.not_in(_ENDED))
    )
    found: dict[str, OperationProgress] = {}
    with database.read() as connection:
        for row in connection.execute(query):
            shown = found[row.migration_uuid] = OperationProgress(row.recipe, SagaState(row.state))
            if row.steps:
                step = msgspec.convert(row.steps[-1], StepRecord)
                step.show(row.reported_done, row.reported_total)
                shown.step, shown.round, shown.seconds_left = step.step, step.round, step.seconds_left(now)
                shown.bytes_done, shown.bytes_total = step.bytes_done, step.bytes_total
    return found
