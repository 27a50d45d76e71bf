"""Whether an operation may continue. It may be cancelled or taken over, or its server may be being deleted."""

from __future__ import annotations

from typing import Any

import msgspec
import sqlalchemy as sa

from causeway import errors
from causeway.model.operation_kinds import recipes_where
from causeway.model.operations import Operation
from causeway.model.orders import Awaited, Order
from causeway.model.sagas import CANCELLABLE, SagaState, StepPhase, StepRecord, StepState
from causeway.store.api.journal import OPERATIONS
from causeway.store.api_tables import InstanceMappings
from causeway.store.database import Database

CONTINUE_WHILE_DELETED = recipes_where(lambda kind: kind.continues_while_deleted)
CANCELLED = "It was cancelled on request."
_NAMES = (
    *("id", "instance_uuid", "migration_uuid", "recipe", "epoch", "state"),
    *("pivoted", "cancel_requested", "step", "at_hand"),
)
WANTED = sa.select(*(OPERATIONS.c[name] for name in _NAMES), InstanceMappings.queued_for_delete).select_from(
    OPERATIONS.outerjoin(InstanceMappings, InstanceMappings.instance_uuid == OPERATIONS.c.instance_uuid)
)
_WITH_STEPS = WANTED.add_columns(OPERATIONS.c.steps).where(OPERATIONS.c.id == sa.bindparam("of_operation"))
_GOING_FORWARD = [state.value for state in (SagaState.REQUESTED, SagaState.RUNNING, SagaState.STUCK)]
ONE_WANTED = WANTED.where(OPERATIONS.c.id == sa.bindparam("of_operation"))


def check_wanted(database: Database, operation: Operation) -> None:
    """Raises Cancelled, StateChanged (the server is being deleted) or TakenOver if the operation is no longer wanted."""
    with database.read() as connection:
        found = connection.execute(ONE_WANTED, {"of_operation": operation.id}).one_or_none()
    if found is None or found.epoch > operation.epoch:
        raise errors.TakenOver(f"Operation {operation.id} was taken over by another conductor.")
    refuse_unwanted(found)


def refuse_unwanted(operation: sa.Row[Any]) -> None:
    """``operation``: a row of `WANTED`. Raises Cancelled, or StateChanged if its server is being deleted."""
    if operation.pivoted:
        return
    if operation.queued_for_delete and operation.recipe not in CONTINUE_WHILE_DELETED:
        raise errors.StateChanged(f"Server {operation.instance_uuid} is being deleted: other operations on it end.")
    if operation.cancel_requested:
        raise errors.Cancelled(CANCELLED)


def awaited(database: Database, order: Order) -> Awaited:
    """Whether the operation still waits for the answer to an order, in one statement."""
    with database.read() as connection:
        found = connection.execute(_WITH_STEPS, {"of_operation": order.operation_id}).one_or_none()
    if found is None or found.state not in _GOING_FORWARD:
        return Awaited.NO
    try:
        refuse_unwanted(found)
    except (errors.Cancelled, errors.StateChanged):
        return Awaited.NO
    if found.epoch != order.epoch:
        return Awaited.BY_A_LATER_ATTEMPT
    steps = msgspec.convert(found.steps, list[StepRecord])
    if any(step.phase is StepPhase.UNDO for step in steps):
        return Awaited.NO
    if not steps or steps[-1].state is not StepState.STARTED:
        return Awaited.BY_A_LATER_ATTEMPT
    present = (steps[-1].sequence, steps[-1].attempt)
    return Awaited.YES if present == (order.sequence, order.attempt) else Awaited.BY_A_LATER_ATTEMPT


def request_cancel(database: Database, migration_uuid: str) -> bool:
    """Cancels a migration's move, or an operation. Returns False if there is none, or it has passed its pivot.

    ``migration_uuid``: of the migration, or the operation's own id if it has none. A move that is already being rolled back will
    not be tried again as a whole.
    """
    with database.write() as connection:
        return bool(
            connection.execute(
                OPERATIONS.update()
                .where(
                    OPERATIONS.c.migration_uuid == migration_uuid,
                    OPERATIONS.c.pivoted.is_(False),
                    OPERATIONS.c.state.in_([state.value for state in CANCELLABLE]),
                )
                .values(cancel_requested=True)
            ).rowcount
        )


def cancel_in(connection: sa.Connection, instance_uuid: str, recipe: str) -> None:
    """Cancels the operation of a recipe on a server, unless it has passed its pivot."""
    cancellable = OPERATIONS.c.state.in_([state.value for state in CANCELLABLE])
    wanted = (OPERATIONS.c.instance_uuid == instance_uuid, OPERATIONS.c.recipe == recipe)
    connection.execute(
        OPERATIONS.update().where(*wanted, OPERATIONS.c.pivoted.is_(False), cancellable).values(cancel_requested=True)
    )
