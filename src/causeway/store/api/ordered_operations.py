"""The journal for computes: whether an order is still wanted, and the progress of its transfer."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from causeway import errors
from causeway.model.outcomes import OperationToken
from causeway.model.sagas import SagaState
from causeway.model.states import MigrationStatus
from causeway.store.api import migrations
from causeway.store.api.journal import OPERATIONS
from causeway.store.api.wanted_operations import ONE_WANTED, WANTED, refuse_unwanted
from causeway.store.api_tables import ReportedProgress
from causeway.store.database import Database, parts, utcnow
from causeway.store.upsert import upsert_of

PROGRESS: sa.Table = ReportedProgress.__table__  # type: ignore[assignment]
#: a move's, while the attempt of which it was reported is under way
IS_OF_OPERATION = sa.and_(PROGRESS.c.move_id == OPERATIONS.c.id, PROGRESS.c.at_hand == OPERATIONS.c.at_hand)
REPORTED = (PROGRESS.c.bytes_done.label("reported_done"), PROGRESS.c.bytes_total.label("reported_total"))
_IN = WANTED.where(OPERATIONS.c.id.in_(sa.bindparam("of_operations", expanding=True)))
_COUNT = migrations.TABLE.update().where(
    migrations.TABLE.c.uuid == sa.bindparam("of_migration"),
    # The final numbers of a guest that has gone must not be overwritten.
    sa.exists().where(
        OPERATIONS.c.id == sa.bindparam("of_operation"), OPERATIONS.c.at_hand == sa.bindparam("of_attempt")
    ),
)


@dataclass
class Report:
    """The progress of a move's transfer. ``at_hand``: the attempt that it is about.

    ``counters``: of a live migration, by the columns of the migration.
    """

    token: OperationToken
    at_hand: str
    done: int
    total: int
    counters: dict[str, int] | None = None


def ordered(database: Database, operation_ids: Collection[str]) -> dict[str, sa.Row[Any]]:
    """move -> its row of `WANTED`."""
    found: dict[str, sa.Row[Any]] = {}
    with database.read() as connection:
        for some in parts(sorted(operation_ids)):
            found |= {row.id: row for row in connection.execute(_IN, {"of_operations": list(some)})}
    return found


def wanted(operation: sa.Row[Any] | None, token: OperationToken) -> sa.Row[Any]:
    """Returns the move, if the transfer under the token is still wanted.

    Raises Cancelled, StateChanged (the server is being deleted) or TakenOver if it is not.
    """
    # A host holds tokens of its own moves. What it counts must not get into the migration of another one.
    is_of_token = operation is not None and operation.migration_uuid == token.migration_uuid
    if (
        operation is None
        or not is_of_token
        or operation.epoch > token.epoch
        or operation.state != SagaState.RUNNING.value
    ):
        raise errors.TakenOver(f"The transfer of move {token.operation_id} runs elsewhere, or is over.")
    refuse_unwanted(operation)
    return operation


def attempt_of(operation: sa.Row[Any], token: OperationToken) -> str | None:
    """The attempt that sends under the token; None if there is none, because the step has ended or is another one."""
    found: str | None = operation.at_hand
    return found if (operation.epoch, operation.step) == (token.epoch, token.step) else None


def write(database: Database, reports: Collection[Report]) -> None:
    """Writes the progress of transfers in one transaction. Reports of ended attempts are never shown."""
    in_order = sorted(reports, key=lambda report: report.token.operation_id)
    rows = [
        {
            "move_id": report.token.operation_id,
            "at_hand": report.at_hand,
            "bytes_done": report.done,
            "bytes_total": report.total,
        }
        for report in in_order
    ]
    counted = [
        report.counters
        | {
            "of_migration": report.token.migration_uuid,
            "of_operation": report.token.operation_id,
            "of_attempt": report.at_hand,
            "updated_at": utcnow(),
        }
        for report in in_order
        if report.counters is not None
    ]
    with database.write() as connection:
        connection.execute(upsert_of(connection.dialect.name, PROGRESS), rows)
        if counted:
            connection.execute(_COUNT, counted)


def note_post_copy(database: Database, token: OperationToken) -> None:
    """Records that the guest runs at the target while its memory follows, unless this is recorded or the migration has ended."""
    before, after = MigrationStatus.RUNNING, MigrationStatus.RUNNING_POST_COPY
    if migrations.get(database, token.migration_uuid).status is before:
        with database.write() as connection:
            migrations.swap_status_in(connection, token.migration_uuid, before, after)


def check_order(database: Database, token: OperationToken, *, forward: bool) -> None:
    """Raises TakenOver unless a conductor's order is wanted now. ``forward``: the order needs a move that goes forward."""
    states = {SagaState.RUNNING} if forward else {SagaState.RUNNING, SagaState.UNDOING}
    with database.read() as connection:
        operation = connection.execute(ONE_WANTED, {"of_operation": token.operation_id}).one_or_none()
    if operation is None or operation.epoch != token.epoch or SagaState(operation.state) not in states:
        raise errors.TakenOver(f"The order for step {token.step} of move {token.operation_id} came too late.")
