"""Whether an operation is to continue: it may be cancelled, taken over, or its server deleted."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from causeway import errors
from causeway.model.operations import DELETE, Operation
from causeway.model.sagas import CANCELLABLE
from causeway.store.api.journal import MOVES
from causeway.store.api_tables import InstanceMappings
from causeway.store.database import Database

# A server that waits for confirm or revert is deleted by confirming it: these continue, and what deletes it.
CONTINUE_WHILE_DELETED = ("cross_cell_confirm", "same_cell_confirm", "cross_cell_revert", "same_cell_revert", DELETE)
CANCELLED = "It was cancelled on request."
_NAMES = ("id", "instance_uuid", "recipe", "epoch", "state", "pivoted", "cancel_requested", "step", "at_hand")
OPERATIONS = sa.select(*(MOVES.c[name] for name in _NAMES), InstanceMappings.queued_for_delete).select_from(
    MOVES.outerjoin(InstanceMappings, InstanceMappings.instance_uuid == MOVES.c.instance_uuid)
)
OPERATION = OPERATIONS.where(MOVES.c.id == sa.bindparam("of_operation"))


def check_wanted(database: Database, operation: Operation) -> None:
    """Raises Cancelled, StateChanged (the server is to be deleted) or TakenOver if nobody wants the operation any more."""
    with database.read() as connection:
        found = connection.execute(OPERATION, {"of_operation": operation.id}).one_or_none()
    if found is None or found.epoch > operation.epoch:
        raise errors.TakenOver(f"Operation {operation.id} was taken over by another conductor.")
    refuse_unwanted(found)


def refuse_unwanted(operation: sa.Row[Any]) -> None:
    """``operation``: a row of `OPERATIONS`. Raises Cancelled, or StateChanged: its server is to be deleted."""
    if operation.pivoted:
        return
    if operation.queued_for_delete and operation.recipe not in CONTINUE_WHILE_DELETED:
        raise errors.StateChanged(
            f"Server {operation.instance_uuid} is to be deleted: what works on it goes no further."
        )
    if operation.cancel_requested:
        raise errors.Cancelled(CANCELLED)


def request_cancel(database: Database, migration_uuid: str) -> bool:
    """Asks for the end of a migration's move, or of an operation; False if there is none, or it has passed its pivot.

    ``migration_uuid``: the operation's own id, if it works for no migration.
    One that is being rolled back already is not tried again as a whole.
    """
    with database.write() as connection:
        return bool(
            connection.execute(
                MOVES.update()
                .where(
                    MOVES.c.migration_uuid == migration_uuid,
                    MOVES.c.pivoted.is_(False),
                    MOVES.c.state.in_([state.value for state in CANCELLABLE]),
                )
                .values(cancel_requested=True)
            ).rowcount
        )


def cancel_in(connection: sa.Connection, instance_uuid: str, recipe: str) -> None:
    """Asks for the end of what a recipe does to a server, unless it has passed its pivot."""
    cancellable = MOVES.c.state.in_([state.value for state in CANCELLABLE])
    wanted = (MOVES.c.instance_uuid == instance_uuid, MOVES.c.recipe == recipe)
    connection.execute(
        MOVES.update().where(*wanted, MOVES.c.pivoted.is_(False), cancellable).values(cancel_requested=True)
    )
