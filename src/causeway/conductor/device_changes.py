"""Volumes and ports of servers that are there: attached and detached.

What can't be ended, because somebody did not answer, is left as it is: the row that keeps moves away stays, and a conductor
settles it later (`causeway.conductor.device_recovery`).
"""

from __future__ import annotations

import logging
import uuid as uuids
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import sqlalchemy as sa

from causeway import errors
from causeway.clients.port_requests import request_of
from causeway.context import RequestContext
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.network import RequestedNetwork, Vif
from causeway.parts import devices, history, making, port_resources, releasing
from causeway.parts.services import ConductorServices
from causeway.store.cell import block_devices, device_changes, instances
from causeway.store.cell.device_changes import NEW_PORT
from causeway.store.database import Database

LOG = logging.getLogger(__name__)


@dataclass
class Change:
    """An attach or detach that this conductor does. ``is_half_done``: if it fails now, somebody has to settle it."""

    database: Database
    instance_uuid: str
    request_id: str
    what: str
    resource_id: str
    owner: str
    is_half_done: bool = False

    def hold_in(self, connection: sa.Connection) -> None:
        device_changes.hold_in(connection, self.instance_uuid, self.request_id, self.what, self.owner)

    def end_in(self, connection: sa.Connection) -> None:
        device_changes.end_in(connection, self.instance_uuid, self.request_id, self.what, self.owner)

    @contextmanager
    def detaching(self) -> Iterator[None]:
        """Half done from here on; but if the guest keeps what it has, everything is as it was."""
        self.is_half_done = True
        try:
            yield
        except errors.GuestFailed:
            self.is_half_done = False
            raise

    def leave(self, failure: errors.CausewayError) -> None:
        """Has it settled. If another conductor has done that meanwhile, that was before this one's last call came through."""
        if isinstance(failure, errors.StateChanged):
            device_changes.leave(
                self.database, self.instance_uuid, self.request_id, self.what, self.resource_id, self.owner
            )

    def end(self) -> None:
        try:
            device_changes.end(self.database, self.instance_uuid, self.request_id, self.owner)
        except errors.DatabaseFailed as failure:
            LOG.warning(
                "Server %s can't be moved until its %s is settled: %s", self.instance_uuid, self.what, failure.details
            )


class DevicesEndpoint:
    """RPC: attach and detach volumes and ports of servers."""

    def __init__(self, services: ConductorServices) -> None:
        self._services = services

    @contextmanager
    def _changing(self, context: RequestContext, instance_uuid: str, what: str, resource_id: str) -> Iterator[Change]:
        """No move of the server begins meanwhile; raises StateChanged if one works on it already."""
        _cell, database = self._services.cells.of_server(instance_uuid)
        change = Change(database, instance_uuid, context.request_id, what, resource_id, self._services.life.owner)
        device_changes.go_on(database, instance_uuid, context.request_id, what, resource_id, change.owner)
        try:
            yield change
        except errors.CausewayError as failure:
            if change.is_half_done:
                change.leave(failure)
                LOG.warning(
                    "The %s of server %s stays half done, and the server can't be moved, until it is settled: %s %s",
                    what,
                    instance_uuid,
                    failure.message,
                    failure.details,
                )
            else:
                change.end()
            raise
        change.end()

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
        with self._changing(context, instance_uuid, "attach_volume", volume_id) as change:
            return self._attach_volume(context, change, volume_id, device, tag, delete_on_termination)

    def detach_volume(self, context: RequestContext, *, instance_uuid: str, volume_id: str) -> None:
        with self._changing(context, instance_uuid, "detach_volume", volume_id) as change:
            self._detach_volume(context, change, volume_id)

    def attach_interface(self, context: RequestContext, *, instance_uuid: str, requested: RequestedNetwork) -> Vif:
        with self._changing(context, instance_uuid, "attach_interface", requested.port_id or NEW_PORT) as change:
            return self._attach_interface(context, change, requested)

    def detach_interface(self, context: RequestContext, *, instance_uuid: str, port_id: str) -> None:
        with self._changing(context, instance_uuid, "detach_interface", port_id) as change:
            self._detach_interface(context, change, port_id)

    def _attach_volume(
        self,
        context: RequestContext,
        change: Change,
        volume_id: str,
        device: str | None,
        tag: str | None,
        delete_on_termination: bool,
    ) -> BlockDevice:
        services, database, instance_uuid = self._services, change.database, change.instance_uuid
        instance = instances.get(database, instance_uuid)
        present = block_devices.of_instance(database, instance_uuid)
        if device is not None and any(other.device_name == device for other in present):
            raise errors.Conflict(f"The supplied device path ({device}) is in use.")
        volume = services.volumes.show(context, volume_id)
        devices.check_zone(services, instance, volume)
        mapping = BlockDevice(
            uuid=str(uuids.uuid4()),
            instance_uuid=instance_uuid,
            source_type="volume",
            destination_type="volume",
            device_name=device or devices.next_device_name(present),
            volume_id=volume_id,
            volume_size=volume.size,
            multiattach=volume.multiattach,
            tag=tag,
            delete_on_termination=delete_on_termination,
        )
        known = {other.attachment_id for other in present}
        change.is_half_done = True
        try:
            mapping.attachment_id = devices.reserve_volume(services, context, volume_id, instance_uuid, known)
            with database.write() as connection:
                change.hold_in(connection)
                block_devices.insert(connection, [mapping])
            connected = self._connect_volume(context, database, instance, mapping)
        except (errors.RpcTimeout, errors.DatabaseFailed):
            # The host may be at it still, or the record may be there: who settles this looks.
            raise
        except errors.CausewayError as failure:
            self._give_volume_back(context, database, mapping, known, failure)
            change.is_half_done = False
            if instances.find(database, instance_uuid, with_tags=False) is None:
                raise errors.ServerNotFound(instance_uuid) from failure
            raise
        with database.write() as connection:
            change.end_in(connection)
            block_devices.update_in(connection, mapping.uuid, connection_info=connected.connection_info)
        return connected

    def _connect_volume(
        self, context: RequestContext, database: Database, instance: Instance, mapping: BlockDevice
    ) -> BlockDevice:
        """Gives a volume that is reserved to the guest."""
        services = self._services
        with history.event(database, context, instance.uuid, "compute_attach_volume", instance.host or ""):
            if instance.host is None:
                # Shelved and offloaded: connected when the server is brought back. As in the field it is in use all the same.
                services.volumes.complete_attachment(context, mapping.attachment_id or "")
                return mapping
            cell, _database = services.cells.of_server(instance.uuid)
            return services.computes(cell.uuid).attach_volume(
                context, instance.host, instance=instance, block_device=mapping
            )

    def _give_volume_back(
        self,
        context: RequestContext,
        database: Database,
        mapping: BlockDevice,
        known: set[str | None],
        failure: errors.CausewayError,
    ) -> None:
        services = self._services
        if mapping.attachment_id is not None:
            services.volumes.delete_attachment(context, mapping.attachment_id)
            block_devices.delete(database, mapping.uuid)
        elif isinstance(failure, errors.ServiceFailed) and not isinstance(failure, errors.ServiceRefused):
            # It may be reserved all the same.
            devices.drop_reservations(services, context, mapping.instance_uuid, mapping.volume_id or "", known)

    def _detach_volume(self, context: RequestContext, change: Change, volume_id: str) -> None:
        cell, database = self._services.cells.of_server(change.instance_uuid)
        instance = instances.get(database, change.instance_uuid)
        present = block_devices.of_instance(database, change.instance_uuid)
        mapping = next((found for found in present if found.volume_id == volume_id), None)
        if mapping is None:
            return
        with change.detaching():
            devices.detach_volume(self._services, context, cell.uuid, database, instance, mapping)

    def _attach_interface(self, context: RequestContext, change: Change, requested: RequestedNetwork) -> Vif:
        services, database, instance_uuid = self._services, change.database, change.instance_uuid
        instance = instances.get(database, instance_uuid)
        if requested.network_id is None and requested.port_id is None:
            requested = services.network.validate_networks(context, [], 1, instance.project_id)[0]
        vif = self._make_port(context, change, instance, requested)
        instance.network_info.append(vif)
        asked = request_of(vif.id, requested.resource_request)
        change.is_half_done = True
        try:
            if asked is not None:
                port_resources.claim(services, database, instance, vif, asked)
            return self._plug(context, change, instance, vif)
        except (errors.RpcTimeout, errors.DatabaseFailed, errors.StateChanged):
            # As with volumes; or another conductor has taken it up.
            raise
        except errors.CausewayError as failure:
            releasing.release_port(services, context, vif)
            if asked is not None:
                port_resources.settle(services, context, instance)
            change.is_half_done = False
            # Bug 1944787: a server that was deleted meanwhile is not found, whatever failed because of that.
            if instances.find(database, instance_uuid, with_tags=False) is None:
                raise errors.ServerNotFound(instance_uuid) from failure
            raise

    def _make_port(
        self, context: RequestContext, change: Change, instance: Instance, requested: RequestedNetwork
    ) -> Vif:
        try:
            return making.make_port(self._services, context, instance, requested)
        except errors.ServiceFailed as failure:
            # It may be there all the same.
            change.is_half_done = requested.port_id is None and not isinstance(failure, errors.ServiceRefused)
            raise

    def _plug(self, context: RequestContext, change: Change, instance: Instance, vif: Vif) -> Vif:
        """Gives a port to the guest, and writes down that the server has it."""
        database, uuid = change.database, instance.uuid
        cell, _database = self._services.cells.of_server(uuid)
        with history.event(database, context, uuid, "compute_attach_interface", instance.host or ""):
            found = self._services.computes(cell.uuid).attach_interface(
                context, instance.host or "", instance=instance, port_id=vif.id
            )
        plugged = next(port for port in found if port.id == vif.id)
        with database.write() as connection:
            # Others may have plugged or unplugged meanwhile: what the host saw of their ports is not the last word.
            ports = [port for port in instances.get_in(connection, uuid).network_info if port.id != vif.id]
            change.end_in(connection)
            instances.update_in(connection, uuid, network_info=[*ports, plugged])
        return plugged

    def _detach_interface(self, context: RequestContext, change: Change, port_id: str) -> None:
        cell, database = self._services.cells.of_server(change.instance_uuid)
        instance = instances.get(database, change.instance_uuid)
        vif = next((found for found in instance.network_info if found.id == port_id), None)
        if vif is None:
            return
        with change.detaching():
            devices.detach_interface(self._services, context, cell.uuid, database, instance, vif)
