"""Attaches and detaches that were left in the middle: settled, by looking at what is there.

Nobody was told that an attach has ended while its row is there: it is taken back. A detach was accepted: it is carried out.
Each can be broken off anywhere and begun again. What can't be done now, because a host or a service is away, stays as it is: the
server is not moved meanwhile, and the next look tries again. That goes for a host that was forced down, too: its guest may have
the device, and comes back with it. Once the server is evacuated or deleted, nobody asks that host any more.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from causeway import errors
from causeway.clients.network_api import Json
from causeway.context import RequestContext
from causeway.model.instance import Instance
from causeway.model.sagas import SagaState
from causeway.model.states import TaskState
from causeway.parts import devices, history, liveness, port_resources
from causeway.parts.services import ConductorServices
from causeway.store.api import journal, mappings
from causeway.store.cell import actions, block_devices, device_changes, instances
from causeway.store.cell.device_changes import NEW_PORT, DeviceChange
from causeway.store.database import Database

LOG = logging.getLogger(__name__)

INTERRUPTED = "The service was stopped, or got no answer, while it did this: it was taken back."


class DeviceRecoveryEndpoint:
    """RPC: settle_device_change."""

    def __init__(self, services: ConductorServices) -> None:
        self._services = services

    def settle_device_change(
        self,
        context: RequestContext,
        *,
        instance_uuid: str,
        cell_uuid: str,
        change_id: int,
        started_at: datetime,
    ) -> None:
        services, owner = self._services, self._services.life.owner
        database = services.cells.database(cell_uuid)
        change = device_changes.take_over(database, change_id, started_at, owner)
        if change is None:
            return
        try:
            settle(services, context, cell_uuid, database, change)
        except errors.CausewayError as failure:
            LOG.warning(
                "The %s that server %s was left in can't be settled now, and the server can't be moved. It is tried again: %s %s",
                change.what,
                instance_uuid,
                failure.message,
                failure.details,
            )
            return
        device_changes.settled(database, change, owner)


@dataclass
class _Left:
    """``instance`` None: the server is deleted; what is reserved for it goes, and there is no guest."""

    services: ConductorServices
    context: RequestContext
    cell_uuid: str
    database: Database
    change: DeviceChange
    instance: Instance | None

    @property
    def uuid(self) -> str:
        return self.change.instance_uuid

    @property
    def resource_id(self) -> str:
        return self.change.resource_id or ""

    def require_host(self) -> None:
        """Raises HostDown if the server's guest can't be asked now; a server without a host has none."""
        if self.instance is not None and self.instance.host:
            life = liveness.of_host(self.services, self.database, self.instance.host)
            if not life.is_up:
                raise errors.HostDown("The host of the server is needed for that.", details=life.explained())

    def note_failure(self, event: str) -> None:
        failed = history.failed_event(event, errors.Interrupted(INTERRUPTED))
        actions.record_event(self.database, self.uuid, self.change.request_id, failed)


def settle(
    services: ConductorServices, context: RequestContext, cell_uuid: str, database: Database, change: DeviceChange
) -> None:
    """Ends a change that is the caller's: afterwards guest, records and services agree. Raises what keeps it from that."""
    uuid = change.instance_uuid
    if mappings.cells_of(services.api, [uuid]).get(uuid, cell_uuid) != cell_uuid:
        # A move was quicker, so nobody has begun to do what was asked for.
        return
    instance = instances.find(database, uuid)
    move = journal.active_of_server(services.api, uuid)
    # A move that is only proposed is refused because of this change. One that is to delete the server does not wait for it.
    if move is not None and move.state is not SagaState.PROPOSED and not _is_deleted(instance):
        if change.owner is None:
            # The move was quicker; who would have refused the change died.
            return
        raise errors.MigrationNotFinished(f"A move works on server {uuid}.")
    _SETTLES[change.what](_Left(services, context, cell_uuid, database, change, instance))


def _is_deleted(instance: Instance | None) -> bool:
    return instance is None or instance.task_state is TaskState.DELETING


def _attach_volume(left: _Left) -> None:
    services, context, instance, volume_id = left.services, left.context, left.instance, left.resource_id
    mapping = None
    if instance is not None:
        present = block_devices.of_instance(left.database, left.uuid)
        mapping = next((found for found in present if found.volume_id == volume_id), None)
    if mapping is not None and instance is not None:
        if mapping.connection_info is not None:
            # It was written down that it had ended.
            return
        if instance.host:
            left.require_host()
            services.computes(left.cell_uuid).detach_volume(
                context, instance.host, instance=instance, block_device=mapping
            )
    devices.drop_reservations(services, context, left.uuid, volume_id, set())
    if mapping is not None:
        block_devices.delete(left.database, mapping.uuid)
    left.note_failure("compute_attach_volume")


def _detach_volume(left: _Left) -> None:
    instance, volume_id = left.instance, left.resource_id
    if instance is not None:
        present = block_devices.of_instance(left.database, left.uuid)
        mapping = next((found for found in present if found.volume_id == volume_id), None)
        if mapping is not None:
            left.require_host()
            try:
                devices.detach_volume(left.services, left.context, left.cell_uuid, left.database, instance, mapping)
            except errors.GuestFailed as failure:
                _kept(left, failure)
                return
    devices.drop_reservations(left.services, left.context, left.uuid, volume_id, set())


def _attach_interface(left: _Left) -> None:
    services, context, instance = left.services, left.context, left.instance
    ports = _unknown_ports(left)
    for port in ports:
        if instance is not None and instance.host:
            left.require_host()
            services.computes(left.cell_uuid).detach_interface(
                context, instance.host, instance=instance, vif=services.network.vif_of_port(context, port)
            )
        if left.resource_id == NEW_PORT:
            services.network.delete_port(context, port["id"])
        else:
            services.network.unbind_port(context, port["id"])
    if instance is not None:
        if any(port.get("resource_request") for port in ports):
            port_resources.settle(services, context, instance)
        if left.resource_id not in {vif.id for vif in instance.network_info}:
            left.note_failure("compute_attach_interface")


def _unknown_ports(left: _Left) -> list[Json]:
    """The ports that were given to the server for this request, and that its record does not name.

    Which ports were made for this request is known only if no other one may have made any.
    """
    # In this order: a port that another request gave to the server is in its record, or that request's row is there still.
    ports = left.services.network.ports_of_server(left.context, left.uuid)
    with left.database.write() as connection:
        rows = device_changes.of_server_in(connection, left.uuid)
        instance = instances.get_in(connection, left.uuid) if left.instance is not None else None
    known = {vif.id for vif in instance.network_info} if instance is not None else set()
    if left.resource_id != NEW_PORT:
        return [port for port in ports if port["id"] == left.resource_id and port["id"] not in known]
    others = [row for row in rows if row.id != left.change.id and row.what == "attach_interface"]
    found = [port for port in ports if port["id"] not in known | {row.resource_id for row in others}]
    if found and any(row.resource_id in (NEW_PORT, None) for row in others):
        raise errors.StateChanged("Another port is made for the server at this time.")
    return found


def _detach_interface(left: _Left) -> None:
    instance = left.instance
    vif = next((vif for vif in instance.network_info if vif.id == left.resource_id), None) if instance else None
    if instance is None or vif is None:
        # Who deletes a server releases its ports.
        return
    left.require_host()
    held = {port["id"] for port in left.services.network.ports_of_server(left.context, left.uuid)}
    try:
        devices.detach_interface(
            left.services, left.context, left.cell_uuid, left.database, instance, vif, is_held=vif.id in held
        )
    except errors.GuestFailed as failure:
        _kept(left, failure)


def _kept(left: _Left, failure: errors.GuestFailed) -> None:
    LOG.warning("The guest of server %s keeps %s: %s", left.uuid, left.resource_id, failure.message)


_SETTLES: dict[str, Callable[[_Left], None]] = {
    "attach_volume": _attach_volume,
    "detach_volume": _detach_volume,
    "attach_interface": _attach_interface,
    "detach_interface": _detach_interface,
}
