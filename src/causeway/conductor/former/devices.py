"""Turns attaches and detaches of the previous release into operations of the journal.

That release wrote them to a table of their cell. An attach that it did not finish is undone: the volume or port is detached if
the server has it.
"""

from __future__ import annotations

import logging

from causeway import errors
from causeway.clients.network import is_made_for
from causeway.clients.port_owners import PortOwner
from causeway.conductor.endpoints.devices import DevicesEndpoint
from causeway.conductor.endpoints.moves import Keeper
from causeway.context import RequestContext, admin_context
from causeway.model import operations
from causeway.model.block_device import BlockDevice
from causeway.model.network import RequestedNetwork, Vif
from causeway.operations import interfaces, volumes
from causeway.operations.requests import ask_at_once, operation_of
from causeway.parts import acceptance
from causeway.parts.requesters import requester_of
from causeway.parts.requests import RequestServices
from causeway.parts.services import ConductorServices
from causeway.store.cell import block_devices, device_changes, instances
from causeway.store.cell.device_changes import NEW_PORT, DeviceChange
from causeway.store.database import Database

LOG = logging.getLogger(__name__)


class FormerDevicesEndpoint:
    """RPC: attach_volume, detach_volume, attach_interface, detach_interface."""

    def __init__(self, services: ConductorServices, devices: DevicesEndpoint, keeper: Keeper) -> None:
        self._services = services
        self._devices = devices
        self._keeper = keeper

    def attach_volume(
        self,
        context: RequestContext,
        *,
        instance_uuid: str,
        volume_id: str,
        device: str | None,
        tag: str | None,
        delete_on_termination: bool,
    ) -> BlockDevice:
        try:
            return self._devices.add_volume(
                context,
                instance_uuid=instance_uuid,
                volume_id=volume_id,
                device=device,
                tag=tag,
                delete_on_termination=delete_on_termination,
            )
        finally:
            self._end(context, instance_uuid)

    def attach_interface(self, context: RequestContext, *, instance_uuid: str, requested: RequestedNetwork) -> Vif:
        try:
            return self._devices.add_port(context, instance_uuid=instance_uuid, requested=requested)
        finally:
            self._end(context, instance_uuid)

    def detach_volume(self, context: RequestContext, *, instance_uuid: str, volume_id: str) -> None:
        self._begin(context, instance_uuid, operations.DETACH_VOLUME, volumes.DetachMemory(volume_id))

    def detach_interface(self, context: RequestContext, *, instance_uuid: str, port_id: str) -> None:
        self._begin(context, instance_uuid, operations.DETACH_INTERFACE, interfaces.DetachMemory(port_id))

    def _begin(
        self,
        context: RequestContext,
        instance_uuid: str,
        recipe: str,
        memory: volumes.DetachMemory | interfaces.DetachMemory,
    ) -> None:
        move = operation_of(context, instance_uuid, recipe, memory)
        move.pivoted = True
        requester = requester_of(self._services.conf, context, instance_uuid)
        acceptance.accept_at_once(self._services.api, move, requester)
        self._end(context, instance_uuid)
        self._keeper.submit(context, move.id)

    def _end(self, context: RequestContext, instance_uuid: str) -> None:
        _cell, database = self._services.cells.of_server(instance_uuid)
        device_changes.end(database, instance_uuid, context.request_id)


def adopt(services: ConductorServices, requests: RequestServices, database: Database, change: DeviceChange) -> None:
    """Undoes or completes an attach or detach that a conductor of the previous release did not finish."""
    if not device_changes.is_left(database, change):
        return
    LOG.warning("Server %s: the %s that the previous release began is ended", change.instance_uuid, change.what)
    for recipe, memory in _needed(services, database, change):
        context = admin_context(request_id=change.request_id)
        try:
            ask_at_once(requests, context, change.instance_uuid, recipe, memory)
        except errors.StateChanged as refusal:
            LOG.info(
                "Server %s: the %s of the previous release is ended later: %s",
                change.instance_uuid,
                change.what,
                refusal.message,
            )
            return
    device_changes.end(database, change.instance_uuid, change.request_id)


def _needed(
    services: ConductorServices, database: Database, change: DeviceChange
) -> list[tuple[str, volumes.DetachMemory | interfaces.DetachMemory]]:
    uuid, resource_id = change.instance_uuid, change.resource_id
    if resource_id is None:
        return []
    if change.what in (operations.ATTACH_VOLUME, operations.DETACH_VOLUME):
        present = block_devices.of_instance(database, uuid)
        mapping = next((each for each in present if each.volume_id == resource_id), None)
        if change.what == operations.ATTACH_VOLUME and mapping is not None and mapping.connection_info is not None:
            # The attach succeeded, and its end was recorded.
            return []
        return [(operations.DETACH_VOLUME, volumes.DetachMemory(resource_id))]
    if change.what == operations.DETACH_INTERFACE:
        return [(operations.DETACH_INTERFACE, interfaces.DetachMemory(resource_id))]
    instance = instances.find(database, uuid)
    if instance is None:
        return []
    known = {vif.id for vif in instance.network_info}
    ports = services.network.ports_of_server(admin_context(request_id=change.request_id), PortOwner.of(instance))
    given = (
        port["id"]
        for port in ports
        if port["id"] not in known
        and (is_made_for(port, uuid) if resource_id == NEW_PORT else port["id"] == resource_id)
    )
    return [(operations.DETACH_INTERFACE, interfaces.DetachMemory(port_id)) for port_id in given]
