"""The journal for computes: whether an order is still wanted, and the progress of its transfer."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from causeway import errors
from causeway.model.outcomes import MoveToken
from causeway.model.sagas import SagaState
from causeway.model.states import MigrationStatus
from causeway.store.api import migrations
from causeway.store.api.journal import MOVES
from causeway.store.api.wanted_moves import OPERATION, OPERATIONS, refuse_unwanted
from causeway.store.api_tables import ReportedProgress
from causeway.store.database import Database, parts, utcnow
from causeway.store.upsert import upsert_of

PROGRESS: sa.Table = ReportedProgress.__table__  # type: ignore[assignment]
#: a move's, while the attempt of which it was reported is under way
IS_OF_MOVE = sa.and_(PROGRESS.c.move_id == MOVES.c.id, PROGRESS.c.at_hand == MOVES.c.at_hand)
REPORTED = (PROGRESS.c.bytes_done.label("reported_done"), PROGRESS.c.bytes_total.label("reported_total"))
_IN = OPERATIONS.where(MOVES.c.id.in_(sa.bindparam("of_operations", expanding=True)))
_COUNT = migrations.TABLE.update().where(
    migrations.TABLE.c.uuid == sa.bindparam("of_migration"),
    # The final numbers of a guest that has gone must not be overwritten.
    sa.exists().where(MOVES.c.id == sa.bindparam("of_operation"), MOVES.c.at_hand == sa.bindparam("of_attempt")),
)


@dataclass
class Report:
    """The progress of a move's transfer. ``at_hand``: the attempt that it is about.

    ``counters``: of a live migration, by the columns of the migration.
    """

    token: MoveToken
    at_hand: str
    done: int
    total: int
    counters: dict[str, int] | None = None


def ordered(database: Database, move_ids: Collection[str]) -> dict[str, sa.Row[Any]]:
    """move -> its row of `OPERATIONS`."""
    found: dict[str, sa.Row[Any]] = {}
    with database.read() as connection:
        for some in parts(sorted(move_ids)):
            found |= {row.id: row for row in connection.execute(_IN, {"of_operations": list(some)})}
    return found


def wanted(move: sa.Row[Any] | None, token: MoveToken) -> sa.Row[Any]:
    """Returns the move, if the transfer under the token is still wanted.

    Raises Cancelled, StateChanged (the server is being deleted) or TakenOver if it is not.
    """
    # A host holds tokens of its own moves. What it counts must not get into the migration of another one.
    is_of_token = move is not None and move.migration_uuid == token.migration_uuid
    if move is None or not is_of_token or move.epoch > token.epoch or move.state != SagaState.RUNNING.value:
        raise errors.TakenOver(f"The transfer of move {token.move_id} runs elsewhere, or is over.")
    refuse_unwanted(move)
    return move


def attempt_of(move: sa.Row[Any], token: MoveToken) -> str | None:
    """The attempt that sends under the token; None if there is none, because the step has ended or is another one."""
    found: str | None = move.at_hand
    return found if (move.epoch, move.step) == (token.epoch, token.step) else None


def write(database: Database, reports: Collection[Report]) -> None:
    """Writes the progress of transfers in one transaction. Reports of ended attempts are never shown."""
    in_order = sorted(reports, key=lambda report: report.token.move_id)
    rows = [
        {
            "move_id": report.token.move_id,
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
            "of_operation": report.token.move_id,
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


def note_post_copy(database: Database, token: MoveToken) -> None:
    """Records that the guest runs at the target while its memory follows, unless this is recorded or the migration has ended."""
    before, after = MigrationStatus.RUNNING, MigrationStatus.RUNNING_POST_COPY
    if migrations.get(database, token.migration_uuid).status is before:
        with database.write() as connection:
            migrations.swap_status_in(connection, token.migration_uuid, before, after)


def check_order(database: Database, token: MoveToken, *, forward: bool) -> None:
    """Raises TakenOver unless a conductor's order is wanted now. ``forward``: the order needs a move that goes forward."""
    states = {SagaState.RUNNING} if forward else {SagaState.RUNNING, SagaState.UNDOING}
    with database.read() as connection:
        move = connection.execute(OPERATION, {"of_operation": token.move_id}).one_or_none()
    if move is None or move.epoch != token.epoch or SagaState(move.state) not in states:
        raise errors.TakenOver(f"The order for step {token.step} of move {token.move_id} came too late.")
