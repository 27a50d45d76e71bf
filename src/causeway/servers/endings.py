"""Ends operations in the server's record: its task, and its history."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import sqlalchemy as sa

from causeway import errors
from causeway.devices import device_records
from causeway.model import machine_type
from causeway.model.instance import Instance
from causeway.model.outcomes import GuestOutcome
from causeway.model.states import TaskState
from causeway.running.operation_run import OperationRun
from causeway.store import history
from causeway.store.cell import actions, instances
from causeway.store.database import utcnow


def ended(run: OperationRun[Any], tasks: Collection[TaskState], **changes: Any) -> bool:
    """Ends the operation's task and writes ``changes`` of the server. A server that is being deleted keeps its task.

    Returns False if the server has another task, or was deleted: then only its history is changed.
    """
    with run.database.write() as connection:
        return _end_in(connection, run, tasks, changes)


def _end_in(
    connection: sa.Connection, run: OperationRun[Any], tasks: Collection[TaskState], changes: dict[str, Any]
) -> bool:
    """`ended` within the caller's transaction."""
    run.write_history(connection)
    try:
        return instances.end_task_in(connection, run.uuid, tasks, **changes)
    except errors.ServerNotFound:
        return False


def came_up(
    run: OperationRun[Any],
    tasks: Collection[TaskState],
    guest: GuestOutcome,
    there: Instance,
    *,
    beside_devices: bool = False,
    **changes: Any,
) -> bool:
    """`ended`, for a server whose guest was made or started on a host. ``there``: the server as it is on that host.

    ``beside_devices``: ports may have been attached or detached meanwhile (`causeway.model.exclusion`).
    """
    known: dict[str, Any] = {
        "power_state": guest.power_state,
        "network_info": guest.network_info,
        "host": there.host,
        "node": there.node,
        "availability_zone": there.availability_zone,
        "launched_at": utcnow(),
        "numa_topology": guest.numa_topology,
        "pci_devices": guest.pci_devices,
    } | guest.renamed
    with run.database.write() as connection:
        device_records.save_connections_in(connection, guest)
        if guest.machine_type is not None and machine_type.recorded(there.system_metadata) is None:
            metadata = changes.get("system_metadata")
            if metadata is None:
                metadata = _system_metadata_in(connection, run.uuid)
            changes["system_metadata"] = machine_type.recording(metadata, guest.machine_type)
        if beside_devices:
            try:
                known["network_info"] = device_records.seen_ports_in(connection, run.uuid, guest.network_info)
            except errors.ServerNotFound:
                return False
        if not _end_in(connection, run, tasks, known | changes):
            return False
    there.vm_state, there.task_state, there.power_state = changes["vm_state"], None, guest.power_state
    return True


def _system_metadata_in(connection: sa.Connection, uuid: str) -> dict[str, str]:
    """The system metadata as it is now: the guest may have posted a password meanwhile."""
    try:
        return instances.get_in(connection, uuid, with_tags=False).system_metadata
    except errors.ServerNotFound:
        return {}


def failed(run: OperationRun[Any], cause: errors.CausewayError, tasks: Collection[TaskState], **changes: Any) -> None:
    """Ends the task of an operation that was rolled back, and adds a fault that members may read. May be repeated."""
    try:
        if run.is_recorded(cause.message):
            return
        with run.database.write() as connection:
            _record(connection, run, cause)
            instances.end_task_in(connection, run.uuid, tasks, **changes)
    except errors.ServerNotFound:
        return


def _record(connection: sa.Connection, run: OperationRun[Any], cause: errors.CausewayError) -> None:
    run.write_history(connection, cause)
    actions.set_message_in(connection, run.uuid, run.context.request_id, cause.message)
    if not isinstance(cause, errors.Cancelled):
        actions.add_fault_in(connection, run.uuid, history.fault_of(cause, run.step.host if run.step else None))
