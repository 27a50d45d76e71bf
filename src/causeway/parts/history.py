"""Writes a server's history: events of its action, faults, states."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from causeway import errors
from causeway.context import RequestContext
from causeway.model.instance import ActionEvent, InstanceFault
from causeway.store.cell import actions, instances
from causeway.store.database import Database, utcnow


@contextmanager
def event(database: Database, context: RequestContext, uuid: str, name: str, host: str) -> Iterator[None]:
    """Encloses an event of the request's action. Writes its result when the block ends or fails."""
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
        actions.record_event(database, uuid, context.request_id, record)


def failed_event(name: str, failure: errors.CausewayError) -> ActionEvent:
    """An event that ended with a failure."""
    now = utcnow()
    said = "".join(traceback.format_exception(failure))
    return ActionEvent(
        event=name, start_time=now, finish_time=now, host="", result="Error", details=failure.message, traceback=said
    )


def fault_of(failure: errors.CausewayError, on_host: str | None = None) -> InstanceFault:
    return InstanceFault(code=failure.status, message=failure.message[:255], details=failure.details, host=on_host)


def fail(
    database: Database, uuid: str, failure: errors.CausewayError, on_host: str | None = None, /, **changes: Any
) -> None:
    """Adds a fault and changes the server's states, if the server still exists."""
    fault = fault_of(failure, on_host)
    try:
        with database.write() as connection:
            actions.add_fault_in(connection, uuid, fault)
            instances.update_in(connection, uuid, **changes)
    except errors.ServerNotFound:
        return
