"""Writes a server's history: events of its action, faults, states."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa

from causeway import errors
from causeway.context import RequestContext
from causeway.model.instance import ActionEvent, InstanceFault
from causeway.model.states import TaskState
from causeway.store import servers
from causeway.store.cell import actions, instances
from causeway.store.cells import Cells
from causeway.store.database import Database, utcnow


@contextmanager
def event(database: Database, context: RequestContext, uuid: str, name: str, host: str) -> Iterator[None]:
    """Encloses an event of the request's action. Writes its result when the block ends or fails.

    For a server that can't move meanwhile, because it has a task of its own: see `event_beside_move`.
    """
    with _timed(name, host, lambda record: actions.record_event(database, uuid, context.request_id, record)):
        yield


@contextmanager
def event_beside_move(
    cells: Cells, cell_uuid: str, context: RequestContext, uuid: str, name: str, host: str
) -> Iterator[None]:
    """The same for a server that may move to another cell meanwhile: its history goes with it.

    ``cell_uuid``: where it lives when the block begins. Raises RecordsClosed if it is between two cells for too long.
    """

    def write(record: ActionEvent) -> None:
        def add(connection: sa.Connection) -> None:
            actions.record_event_in(connection, uuid, context.request_id, record)

        try:
            _add_beside_move(cells, cell_uuid, uuid, add)
        except errors.ServerNotFound:
            # It was deleted: its history stays where it was.
            actions.record_event(cells.database(cell_uuid), uuid, context.request_id, record)

    with _timed(name, host, write):
        yield


def _add_beside_move(cells: Cells, cell_uuid: str, uuid: str, add: Callable[[sa.Connection], None]) -> None:
    def in_cell(connection: sa.Connection) -> None:
        instances.touch_in(connection, uuid)
        add(connection)

    servers.change(cells, uuid, cell_uuid, in_cell)


@contextmanager
def _timed(name: str, host: str, write: Callable[[ActionEvent], None]) -> Iterator[None]:
    record = ActionEvent(event=name, start_time=utcnow(), host=host, result="Success")
    try:
        yield
    except Exception as failure:
        record.result = "Error"
        record.details = failure.message if isinstance(failure, errors.CausewayError) else type(failure).__name__
        record.traceback = traceback.format_exc()
        raise
    finally:
        record.finish_time = utcnow()
        write(record)


def failed_event(name: str, failure: errors.CausewayError) -> ActionEvent:
    """An event that ended with a failure."""
    now = utcnow()
    said = "".join(traceback.format_exception(failure))
    return ActionEvent(
        event=name, start_time=now, finish_time=now, host="", result="Error", details=failure.message, traceback=said
    )


def fault_of(failure: errors.CausewayError, on_host: str | None = None) -> InstanceFault:
    return InstanceFault(code=failure.status, message=failure.message[:255], details=failure.details, host=on_host)


def add_fault_beside_move(
    cells: Cells, cell_uuid: str, uuid: str, failure: errors.CausewayError, on_host: str | None
) -> None:
    """Adds a fault to a server that may move to another cell meanwhile, if it still exists.

    ``cell_uuid``: where the server was found. Raises RecordsClosed if it is between two cells for too long.
    """
    fault = fault_of(failure, on_host)
    try:
        _add_beside_move(cells, cell_uuid, uuid, lambda connection: actions.add_fault_in(connection, uuid, fault))
    except errors.ServerNotFound:
        return


def fail(
    database: Database,
    uuid: str,
    failure: errors.CausewayError,
    on_host: str | None,
    tasks: Collection[TaskState | None],
    **changes: Any,
) -> None:
    """Adds a fault to a server, if it still exists, and ends its task with these changes.

    ``tasks``: those that the failed work may have. A server with another one keeps it, and its states: other work has begun, such
    as an evacuation from the host that did not answer. For a server that can't move meanwhile: see `add_fault_beside_move`.
    """
    fault = fault_of(failure, on_host)
    try:
        with database.write() as connection:
            actions.add_fault_in(connection, uuid, fault)
            instances.swap_if_in(connection, uuid, tasks, task_state=None, **changes)
    except errors.ServerNotFound:
        return
