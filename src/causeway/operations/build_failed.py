"""Ends a build that failed: sets the server's state, and deletes everything that the build made.

Volumes that a user gave to the server stay reserved for it (`given_volumes`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import msgspec
import sqlalchemy as sa

from causeway import errors
from causeway.clients.network import is_made_for
from causeway.clients.port_owners import PortOwner
from causeway.devices import device_records, late, releasing
from causeway.hosts import cleanups
from causeway.model.block_device import BlockDevice
from causeway.model.host import CELL0_UUID
from causeway.model.instance import Instance
from causeway.model.missed import Missed
from causeway.model.sagas import SagaState
from causeway.model.states import TaskState, VmState
from causeway.operations import given_volumes
from causeway.operations.build_run import BuildMemory, BuildRun
from causeway.running.services import ConductorServices
from causeway.scheduler.request import Selection
from causeway.store import history
from causeway.store.api import build_requests, mappings
from causeway.store.api.build_requests import Asked, BuildRequest
from causeway.store.cell import actions, block_devices, copies, instances

LOG = logging.getLogger(__name__)

TASKS = {TaskState.SPAWNING}


def release(run: BuildRun, work: Callable[[], None]) -> None:
    """Calls ``work`` to release something.

    What a service refuses is released when the server is deleted. If a service is unavailable, this raises its error: the build
    releases it later. Its user does not wait for that: the server is in ERROR already.
    """
    try:
        work()
    except errors.TakenOver:
        raise
    except errors.CausewayError as failure:
        if failure.passes_by_itself:
            _show_failure(run)
            raise
        LOG.warning("Server %s was not built and keeps something until it is deleted: %s", run.uuid, failure.message)


def _show_failure(run: BuildRun) -> None:
    try:
        rolled_back(run, errors.from_wire(run.saga.error))
    except errors.TakenOver:
        raise
    except errors.CausewayError as failure:
        LOG.warning("It is not shown yet that server %s was not built: %s", run.uuid, failure.message)


def claim(services: ConductorServices, instance: Instance, target: Selection) -> None:
    """Claims a host, in place of any earlier claim."""
    services.placement.claim(
        instance.uuid, target.allocation_request.allocations, instance.project_id, instance.user_id
    )


def undo_guest(services: ConductorServices, run: BuildRun, target: Selection) -> None:
    """Destroys the guest on a host that may have it, or be making it. If the host can't be reached, it is ordered to later."""
    instance, present, token = run.instance(), run.devices(), run.token("SpawnGuest")
    host, cell_uuid = target.host, target.cell_uuid

    def undo() -> None:
        services.computes(cell_uuid).undo_build(
            run.context, host, token=token, instance=instance, block_devices=present
        )

    if cleanups.try_now(services, services.cells.database(cell_uuid), host, undo, raised=errors.TakenOver):
        return
    LOG.warning("Host %s may have a guest of server %s: it is ordered to destroy it later", host, run.uuid)
    cleanups.note(services, host, cell_uuid, Missed.DESTROY, instance, present, token)


def rolled_back(run: BuildRun, cause: errors.CausewayError) -> None:
    """Sets the server to ERROR, with the reason: in its cell, or in cell0 if it has none. May be repeated."""
    found = build_requests.asked(run.services.api, run.uuid)
    while found is not None and found.cell_uuid is None and found.request is not None:
        try:
            _bury(run, found, found.request, cause)
        except errors.RequestChanged:
            # Its user has changed it meanwhile.
            found = build_requests.asked(run.services.api, run.uuid)
        else:
            return
    if found is None:
        LOG.info("Server %s was deleted before it was built", run.uuid)
        if run.saga.epoch > 1:
            # A conductor that died here may have reserved its volumes.
            releasing.release_attachments(run.services, run.context, run.uuid)
    elif found.cell_uuid not in (None, CELL0_UUID) and run.memory.targets:
        _fail(run, cause)
    else:
        LOG.info("Server %s is not this build's: %s", run.uuid, cause.message)


def _bury(run: BuildRun, asked: Asked, request: BuildRequest, cause: errors.CausewayError) -> None:
    """Records in cell0 a server that no host could take. Raises RequestChanged if a user has changed it meanwhile."""
    services, instance = run.services, request.instance
    instance.vm_state, instance.task_state, instance.admin_password = VmState.ERROR, None, None
    action = run.action()
    action.events = [history.failed_event("conductor_schedule_and_build_instances", cause)]
    database = services.cells.database(CELL0_UUID)
    given_volumes.keep(run, request.block_devices)
    # An earlier attempt may have done this.
    copies.write(database, copies.Bundle(instance, request.block_devices, [action], [history.fault_of(cause)]))
    with services.api.write() as connection:
        is_wanted = build_requests.delete_as_read_in(connection, run.uuid, asked)
        if is_wanted:
            mappings.set_cell_in(connection, run.uuid, CELL0_UUID, expected=None)
    if not is_wanted:
        copies.hard_delete(database, run.uuid)
        given_volumes.release(run, request.block_devices)
        return
    services.notifier.compute_task_error(
        run.context, "build_instances", instance_uuid=run.uuid, state=VmState.ERROR, error=cause
    )


def _fail(run: BuildRun, cause: errors.CausewayError) -> None:
    host = run.target.host
    try:
        if run.is_recorded(cause.message):
            # Perhaps while the volume service was unavailable.
            unreserved = [device for device in run.devices() if device.attachment_id is None]
            volumes = given_volumes.keep(run, unreserved)
            if volumes:
                with run.database.write() as connection:
                    _record(connection, volumes)
            return
        volumes = given_volumes.keep(run, run.devices())
        with run.database.write() as connection:
            run.write_history(connection, cause)
            _record(connection, volumes)
            actions.set_message_in(connection, run.uuid, run.context.request_id, cause.message)
            actions.add_fault_in(connection, run.uuid, history.fault_of(cause, host))
            changes: dict[str, Any] = {"vm_state": VmState.ERROR, "host": None, "node": None, "network_info": []}
            instances.end_task_in(connection, run.uuid, TASKS, **changes)
        instance = run.instance()
    except errors.ServerNotFound:
        return
    instance.vm_state = VmState.ERROR
    run.services.notifier.instance_action(run.context, instance, "create", "error", host=host, fault=cause)


def _record(connection: sa.Connection, volumes: list[BlockDevice]) -> None:
    for device in volumes:
        known = {"attachment_id": device.attachment_id, "connection_info": device.connection_info}
        block_devices.update_in(connection, device.uuid, **known)


def undo_late(run: BuildRun) -> None:
    """Undoes what ``run`` did after another conductor had taken over its operation, which has ended since."""
    services, server = run.unguarded, run.known_server
    ended = late.require_ended(run)
    if server is None:
        return
    built = msgspec.convert(ended.data, BuildMemory) if ended.state is SagaState.DONE else None
    living, present = _living(run)
    known = set() if living is None else {vif.id for vif in living.network_info}
    for port in services.network.ports_of_server(run.context, PortOwner.of(server[0])):
        if port["id"] not in known and is_made_for(port, run.uuid):
            services.network.delete_port(run.context, port["id"])
    _delete_late_volumes(run, [device for device in server[1] if device.is_volume], present)
    for target in run.memory.targets[: run.memory.at + 1]:
        if living is None or living.host != target.host:
            undo_guest(services, run, target)
    if living is None or living.host is None:
        services.placement.delete_allocations(run.uuid)
    elif built is not None and living.host == built.targets[built.at].host:
        claim(services, living, built.targets[built.at])


def _delete_late_volumes(run: BuildRun, asked: list[BlockDevice], present: list[BlockDevice]) -> None:
    """Deletes volumes that ``run`` made too late. ``asked``: as ``run`` knows them; ``present``: those that the server has."""
    services = run.unguarded
    kept = {device.uuid: device.volume_id for device in present}
    attachments = {device.attachment_id for device in present}
    for device in asked:
        made = services.volumes.made_for(run.context, run.saga.project_id or "", device.uuid)
        for volume_id in {volume.id for volume in made} | ({device.volume_id} if device.volume_id else set()):
            device_records.release_reservations(services, run.context, run.uuid, volume_id, attachments)
        for volume in made:
            if volume.id != kept.get(device.uuid):
                services.volumes.delete(run.context, volume.id)


def _living(run: BuildRun) -> tuple[Instance | None, list[BlockDevice]]:
    """The server as it is now, with its block devices."""
    services = run.unguarded
    asked = build_requests.asked(services.api, run.uuid)
    if asked is None or asked.cell_uuid is None:
        return None, []
    database = services.cells.database(asked.cell_uuid)
    return instances.find(database, run.uuid), block_devices.of_instance(database, run.uuid)
