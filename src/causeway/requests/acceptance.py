"""Accepts or refuses requests for operations: a refused operation never runs, an accepted one is in the journal and runs.

Two databases are written, one after the other. The process may die in between, and the answer to any write may be lost.

1. The journal: the operation is *proposed*. A proposed operation is never run.
2. The server's cell, in one transaction: the swap of the server's states, and the record of the action. Then `Request.prepare`
   makes what the operation needs from its first step on.
3. The journal: the operation is *requested*, and its migration, if it has one, becomes visible. From here on the request counts.
   This is the last write before the user gets the answer.

If one of these fails, the operation is *refused*, and can't become requested: both are values of one field. If an answer is
lost, the row, or the record of the action, shows whether the write took effect. A conductor refuses an operation that has been
proposed for longer than a lease, because its API has died or was suspended. A suspended API notices this in step 3, and begins
again. The API, or else a conductor, undoes what a refused request did to its server, and then deletes it from the journal.
"""

from __future__ import annotations

import logging
import time
import uuid as uuids
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import sqlalchemy as sa

from causeway import errors
from causeway.model.exclusion import ACCEPTED, rule
from causeway.model.instance import Instance, InstanceAction
from causeway.model.operation_kinds import ACTIONS, OperationKind, find_kind, kind_of
from causeway.model.operations import Operation
from causeway.model.requesters import Requester
from causeway.model.sagas import SagaState
from causeway.model.states import MigrationStatus, TaskState, VmState
from causeway.store import servers
from causeway.store.api import journal, migrations, proposals
from causeway.store.cell import actions, instances
from causeway.store.cells import Cells
from causeway.store.database import Database

LOG = logging.getLogger(__name__)

T = TypeVar("T")

# Seconds between attempts to find the outcome of a write whose answer was lost. After these the user is asked to try again.
PAUSES = (0.1, 0.4, 1.5, 4.0)
# Seconds between looks whether another operation has ended that excludes this one. After these the request is refused.
DEVICE_PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8)
# How often a request begins again after a conductor refused it as abandoned.
ATTEMPTS = 3
# The message of an action whose request was refused after the action was recorded.
NOT_ACCEPTED = "The request was broken off before it was accepted. Nothing was done; try again."


@dataclass
class Request:
    """An operation, and what asking for it changes in the server's cell and in its migration."""

    operation: Operation
    action: InstanceAction
    expected_task: Collection[TaskState | None] | None
    expected_vm: Collection[VmState] | None
    changes: dict[str, Any] = field(default_factory=dict)
    #: called between the swap and the acceptance: makes what the operation needs from its first step on; may be repeated
    prepare: Callable[[], None] | None = None
    #: undoes ``prepare``, before a refused request is deleted from the journal; may be repeated
    discard: Callable[[], None] | None = None
    #: whose rights a conductor has that takes the operation over
    requester: Requester | None = None
    #: called in the transaction of the acceptance; if it raises, the request is refused
    on_acceptance: Callable[[sa.Connection], None] | None = None


def all_of(*writes: Callable[[sa.Connection], None] | None) -> Callable[[sa.Connection], None]:
    """Combines writes for `Request.on_acceptance`, in this order."""

    def write(connection: sa.Connection) -> None:
        for one in writes:
            if one is not None:
                one(connection)

    return write


def task_of(operation: Operation) -> TaskState | None:
    """The server's task from the request of an operation on; None if the operation gives it none."""
    return kind_of(operation.recipe).task


def status_of(operation: Operation) -> MigrationStatus | None:
    """The status of a finished migration from the request of its confirm or revert on; None for other requests."""
    kind = find_kind(operation.recipe)
    return None if kind is None else kind.migration_status


def enter(api: Database, cells: Cells, cell_uuid: str, request: Request) -> None:
    """Enters a request until it is accepted. ``cell_uuid``: the server's cell. Waits if the server is just switching cells.

    Raises StateChanged if another request was quicker, DatabaseFailed if it could not be written. Then it never runs.
    """
    for attempt in range(ATTEMPTS):
        if attempt:
            LOG.warning("Operation %s was refused as abandoned: its request begins again", request.operation.id)
            request.operation.id = str(uuids.uuid4())
        swapped = False
        try:
            retry_briefly(partial(_propose, api, request), of_device=False)
            _swap(cells, cell_uuid, request, again=attempt > 0)
            swapped = True
            if request.prepare is not None:
                request.prepare()
            accepted = _accept(api, request)
        except errors.DatabaseFailed:
            # Only the journal knows what took effect.
            _try_to_refuse(api, cells, request)
            raise
        except errors.CausewayError:
            if swapped:
                _try_to_refuse(api, cells, request)
            else:
                _delete_refused(api, request.operation)
            raise
        if accepted:
            return
    raise errors.StateChanged(f"The request for server {request.operation.instance_uuid} took too long. Try again.")


def admit_in(connection: sa.Connection, operation: Operation) -> None:
    """Raises StateChanged (DevicesChanging) if another operation of the server excludes this one.

    The rules are in `causeway.model.exclusion`. Of two requests, the second one sees the first.
    """
    asked = kind_of(operation.recipe).work
    operation.cell_uuid, under_way = journal.under_way_in(connection, operation.instance_uuid)
    for other in under_way:
        if other.id == operation.id or other.state is SagaState.REFUSED:
            continue
        # An operation of a newer release may have an unknown name. It excludes everything.
        kind = find_kind(other.recipe)
        if kind is None or rule(asked, kind.work) not in ACCEPTED:
            raise _excluded(operation, other, kind)
        if operation.resource_id is not None and operation.resource_id == other.resource_id:
            raise errors.StateChanged(
                f"{operation.resource_id} of server {operation.instance_uuid} is being changed by another request"
                f" ({other.recipe}). Try again when that has ended."
            )


def _excluded(operation: Operation, other: Operation, kind: OperationKind | None) -> errors.StateChanged:
    if kind is not None and kind.is_of_device:
        return errors.DevicesChanging(
            f"A volume or port of server {operation.instance_uuid} is being changed ({other.recipe})."
            " Try again when that has ended."
        )
    return errors.StateChanged(
        f"Server {operation.instance_uuid} is being changed by another request ({other.recipe}). Try again when that has ended."
    )


def accept_at_once(api: Database, operation: Operation, requester: Requester) -> None:
    """Accepts, in one write to the journal, an operation that changes nothing in the server's cell before it begins.

    When this returns, the operation is accepted. Raises what `admit_in` raises, and DatabaseFailed if the operation could not be
    written. Then it never runs.
    """

    def insert(connection: sa.Connection) -> None:
        admit_in(connection, operation)
        journal.insert_in(connection, operation, requester=requester)

    def insert_if_missing() -> None:
        with api.write() as connection:
            if proposals.state_in(connection, operation.id) is None:
                insert(connection)

    def insert_now() -> None:
        with api.write() as connection:
            insert(connection)

    try:
        retry_briefly(insert_now, of_device=True)
    except errors.DatabaseFailed:
        # It may have been written all the same.
        _patiently(insert_if_missing)


def retry_briefly(admit: Callable[[], T], *, of_device: bool) -> T:
    """Calls ``admit``, and for 1.5 s again if it is refused: a user may see the end of an operation before the journal has it.

    ``of_device``: for an attach or detach, which waits for any operation. Others wait for attaches and detaches only.
    """
    for pause in DEVICE_PAUSES:
        try:
            return admit()
        except errors.StateChanged as refusal:
            if not (of_device or isinstance(refusal, errors.DevicesChanging)) or isinstance(refusal, errors.TakenOver):
                raise
            time.sleep(pause)
    return admit()


def _propose(api: Database, request: Request) -> None:
    operation, status = request.operation, status_of(request.operation)
    operation.state = SagaState.PROPOSED
    with api.write() as connection:
        admit_in(connection, operation)
        # Only one of two requests can change the migration from "finished".
        if status is not None and not migrations.swap_status_in(
            connection, operation.migration_uuid, MigrationStatus.FINISHED, status
        ):
            raise errors.StateChanged(f"Another request confirms or reverts the resize of {operation.instance_uuid}.")
        journal.insert_in(connection, operation, requester=request.requester)


def _swap(cells: Cells, cell_uuid: str, request: Request, *, again: bool) -> None:
    """Swaps the server's states. ``again``: an earlier attempt may have done it, or a conductor may have restored them."""
    operation, action = request.operation, request.action

    def swap(connection: sa.Connection) -> None:
        if not (again and _is_swapped(connection, operation)):
            instances.swap_in(
                connection,
                operation.instance_uuid,
                expected_task=request.expected_task,
                expected_vm=request.expected_vm,
                **request.changes,
            )
        if again and actions.is_recorded_in(connection, operation.instance_uuid, action.request_id):
            actions.set_message_in(connection, operation.instance_uuid, action.request_id, None)
        else:
            actions.start_in(connection, action)

    try:
        servers.change(cells, operation.instance_uuid, cell_uuid, swap, follow=False)
    except errors.DatabaseFailed:
        if not _patiently(lambda: _took_effect(cells.database(cell_uuid), operation)):
            raise


def _took_effect(database: Database, operation: Operation) -> bool:
    """Whether a swap whose answer was lost was committed. Waits for a swap that is still under way."""
    with database.write() as connection:
        return _is_swapped(connection, operation)


def _is_swapped(connection: sa.Connection, operation: Operation) -> bool:
    """Whether this request's action is the newest one of the server. Locks the server's row."""
    try:
        instance = instances.get_in(connection, operation.instance_uuid, with_tags=False)
    except errors.ServerNotFound:
        return False
    task = task_of(operation)
    if task is not None and instance.task_state is not task and not _keeps_task(instance, operation):
        return False
    found = actions.newest_request_in(connection, operation.instance_uuid, ACTIONS)
    return found is not None and found == operation.request_id


def _keeps_task(instance: Instance, operation: Operation) -> bool:
    """Whether the server has the task of other work, which the operation began beside."""
    return instance.task_state in kind_of(operation.recipe).kept_tasks


def _accept(api: Database, request: Request) -> bool:
    """Accepts the operation. Returns False if a conductor refused it meanwhile. Raises DatabaseFailed if this is unknown."""

    def accept() -> bool:
        with api.write() as connection:
            if proposals.accept_in(connection, request.operation.id):
                if request.on_acceptance is not None:
                    request.on_acceptance(connection)
                return True
            # An earlier attempt, whose answer was lost, has accepted it, or a conductor has refused it.
            return proposals.state_in(connection, request.operation.id) not in (
                None,
                SagaState.PROPOSED,
                SagaState.REFUSED,
            )

    accepted = _patiently(accept)
    if accepted:
        request.operation.state = SagaState.REQUESTED
    return accepted


def _patiently(look: Callable[[], T]) -> T:
    """Calls ``look`` again while the database does not answer. Raises DatabaseFailed when the patience is over."""
    for pause in PAUSES:
        try:
            return look()
        except errors.DatabaseFailed as failure:
            LOG.warning("It is not known yet whether a request was written: %s", failure.details)
        time.sleep(pause)
    return look()


def _delete_refused(api: Database, operation: Operation) -> None:
    """Deletes a request that did nothing to its server from the journal. If this fails, a conductor does it later."""
    try:
        with api.write() as connection:
            if proposals.refuse_in(connection, operation.id):
                _restore_migration(connection, operation)
                proposals.delete_in(connection, operation.id)
    except errors.DatabaseFailed as failure:
        LOG.warning("Operation %s stays in the journal until a conductor finds it: %s", operation.id, failure.details)


def _try_to_refuse(api: Database, cells: Cells, request: Request) -> None:
    operation = request.operation
    try:
        delete_if_refused(api, cells, operation, request.discard)
    except errors.CausewayError as failure:
        # An operation that was not accepted is never run.
        LOG.warning("Operation %s stays in the journal until a conductor finds it: %s", operation.id, failure.message)


def delete_if_refused(
    api: Database, cells: Cells, operation: Operation, discard: Callable[[], None] | None = None
) -> bool:
    """Refuses a proposed operation, undoes what it did, and deletes it from the journal. May be repeated.

    ``discard``: see `Request`. Returns False if the operation was accepted, or is not in the journal.
    """
    if not refuse(api, operation):
        return False
    if discard is not None:
        discard()
    settle(api, cells, operation)
    return True


def refuse(api: Database, operation: Operation) -> bool:
    """Refuses the request, so that it can't be accepted. Returns False if it was accepted, or is not in the journal."""
    with api.write() as connection:
        if proposals.refuse_in(connection, operation.id):
            _restore_migration(connection, operation)
            return True
        return proposals.state_in(connection, operation.id) is SagaState.REFUSED


def _restore_migration(connection: sa.Connection, operation: Operation) -> None:
    status = status_of(operation)
    if status is not None:
        migrations.swap_status_in(connection, operation.migration_uuid, status, MigrationStatus.FINISHED)


def settle(api: Database, cells: Cells, operation: Operation) -> None:
    """Undoes what a refused request did to its server, and deletes it from the journal. May be repeated."""
    try:
        _cell, database = cells.of_server(operation.instance_uuid)
        with database.write() as connection:
            _undo_request(connection, api, operation)
    except errors.ServerNotFound:
        LOG.info("Server %s was deleted: nothing of a refused request is left", operation.instance_uuid)
    with api.write() as connection:
        proposals.delete_in(connection, operation.id)


def _undo_request(connection: sa.Connection, api: Database, operation: Operation) -> None:
    # The server's row is locked from here on. Another request for the server waits, or is in the journal already.
    if not _is_swapped(connection, operation):
        return
    keeps_task = _keeps_task(instances.get_in(connection, operation.instance_uuid, with_tags=False), operation)
    # The work whose task the server kept is no reason to leave the action without a message.
    if proposals.has_others(api, operation, of_request=keeps_task):
        return
    if task_of(operation) is not None and not keeps_task:
        instances.update_in(connection, operation.instance_uuid, task_state=None)
    actions.set_message_in(connection, operation.instance_uuid, operation.request_id or "", NOT_ACCEPTED)
