"""What computes ask of the journal: whether an order is wanted, and to note how far it has come."""

from __future__ import annotations

from typing import Any

from causeway import errors
from causeway.model.outcomes import MoveToken
from causeway.model.sagas import SagaState
from causeway.model.states import MigrationStatus
from causeway.store.api import migrations
from causeway.store.api.journal import STEPS, WANTED, refuse_unwanted
from causeway.store.database import Database


def record_progress(database: Database, token: MoveToken, done: int, total: int) -> None:
    """Notes how far the transfer of the running step has come; nothing, if the step has ended, or is another owner's by now.

    The steps of short operations have no bytes. Raises Cancelled, StateChanged (the server is to be deleted) or TakenOver if
    nobody wants the transfer any more.
    """
    with database.write() as connection:
        move = connection.execute(WANTED, {"of_operation": token.move_id}).one_or_none()
        if move is None or move.epoch > token.epoch or move.state != SagaState.RUNNING.value:
            raise errors.TakenOver(f"The transfer of move {token.move_id} goes on elsewhere, or is over.")
        refuse_unwanted(move)
        connection.execute(
            STEPS.update()
            .where(
                STEPS.c.move_id == token.move_id,
                STEPS.c.step == token.step,
                STEPS.c.ended_at.is_(None),
                # It may be taken over since the look above.
                STEPS.c.epoch == token.epoch,
            )
            .values(bytes_done=done, bytes_total=total)
        )


def record_live_progress(database: Database, token: MoveToken, bytes_of: dict[str, int], *, post_copy: bool) -> str:
    """Notes how far a live migration has come; returns its server's uuid. Raises what `record_progress` does.

    ``bytes_of``: ``memory_total`` and the like, as the migration's columns are named but for ``_bytes``.
    """
    done = bytes_of["memory_processed"] + bytes_of["disk_processed"]
    record_progress(database, token, done, bytes_of["memory_total"] + bytes_of["disk_total"])
    counters: dict[str, Any] = {f"{name}_bytes": value for name, value in bytes_of.items()}
    with database.write() as connection:
        migrations.update_in(connection, token.migration_uuid, **counters)
        if post_copy:
            # One that was reported before, or has ended, stays what it is.
            before, after = MigrationStatus.RUNNING, MigrationStatus.RUNNING_POST_COPY
            migrations.swap_status_in(connection, token.migration_uuid, before, after)
    return migrations.get(database, token.migration_uuid).instance_uuid


def check_order(database: Database, token: MoveToken, *, forward: bool) -> None:
    """Raises TakenOver unless what a conductor orders is wanted now; ``forward``: that needs a move that goes forward."""
    states = {SagaState.RUNNING} if forward else {SagaState.RUNNING, SagaState.UNDOING}
    with database.read() as connection:
        move = connection.execute(WANTED, {"of_operation": token.move_id}).one_or_none()
    if move is None or move.epoch != token.epoch or SagaState(move.state) not in states:
        raise errors.TakenOver(f"The order for step {token.step} of move {token.move_id} came too late.")
