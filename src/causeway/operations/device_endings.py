"""Records attaches and detaches in the server's history. They give the server no task."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

import sqlalchemy as sa

from causeway import errors
from causeway.model.instance import Instance, InstanceAction
from causeway.running.operation_run import OperationRun
from causeway.servers import guests
from causeway.store import history
from causeway.store.api import journal
from causeway.store.cell import actions


class Detaching(Protocol):
    """The memory of a detach. ``is_kept``: the guest does not release the volume or port."""

    is_kept: bool


D = TypeVar("D", bound=Detaching)


def begin(run: OperationRun[Any]) -> None:
    """Records the action. May be repeated."""
    saga = run.saga
    action = InstanceAction(saga.recipe, run.uuid, saga.request_id or "", saga.user_id, saga.project_id)
    with run.database.write() as connection:
        if not (run.is_repeated and actions.is_recorded_in(connection, run.uuid, action.request_id)):
            actions.start_in(connection, action)


def ended(run: OperationRun[Any]) -> None:
    with run.database.write() as connection:
        run.write_history(connection)


def failed(run: OperationRun[Any], failure: errors.CausewayError) -> None:
    """Records a failure. The operation has not changed the server."""
    with run.database.write() as connection:
        _record(connection, run, failure)


def rolled_back(run: OperationRun[Any], cause: errors.CausewayError) -> None:
    """Records why an attach was rolled back. The attach has not changed the server. May be repeated."""
    if run.is_recorded(cause.message):
        return
    with run.database.write() as connection:
        _record(connection, run, cause)
        if not any(event.result == "Error" for event in run.step_events()):
            event = history.failed_event(run.kind.event, cause)
            actions.add_events_in(connection, run.uuid, run.context.request_id, [event])


def _record(connection: sa.Connection, run: OperationRun[Any], cause: errors.CausewayError) -> None:
    run.write_history(connection, cause)
    actions.set_message_in(connection, run.uuid, run.context.request_id, cause.message)


def instance_of(run: OperationRun[Any]) -> Instance | None:
    """The server; None if it was deleted."""
    try:
        return run.instance(tags=False)
    except errors.ServerNotFound:
        return None


def host_of(run: OperationRun[Any]) -> str | None:
    """The server's host; None if it has none, or was deleted."""
    instance = instance_of(run)
    return None if instance is None else instance.host


@contextmanager
def detach_order(run: OperationRun[D], host: str) -> Iterator[None]:
    """Encloses the order to detach something from a guest.

    If the guest keeps it, or its hypervisor can't detach it, the detach fails and everything is as it was. Raises HostDown or
    HostFenced if the host was asked before and does not report now.
    """
    try:
        with run.event(run.kind.event, host):
            if run.is_repeated:
                guests.require_host(run, host)
            yield
    except (errors.GuestFailed, errors.NotImplementedHere) as failure:
        run.memory.is_kept = True
        failed(run, failure)


def is_asked_anew(run: OperationRun[Any]) -> bool:
    """Whether the user has attached the same volume or port again since. For an attach that was taken over and has ended."""
    if run.saga.resource_id is None:
        return False
    known = journal.of_server(run.unguarded.api, run.uuid)
    return [operation.id for operation in known if operation.resource_id == run.saga.resource_id][-1] != run.saga.id
