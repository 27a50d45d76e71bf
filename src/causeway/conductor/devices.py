"""Ports and volumes of servers: made, reserved, attached, detached, released."""

from __future__ import annotations

import dataclasses
import logging
import string
import uuid as uuids
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

from causeway import errors
from causeway.clients.port_resources import ALLOCATION, request_of
from causeway.clients.volume import Volume
from causeway.conductor import history, port_resources
from causeway.conductor.services import ConductorServices
from causeway.context import RequestContext, admin_context
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.network import RequestedNetwork, Vif
from causeway.model.outcomes import GuestOutcome
from causeway.model.states import TaskState
from causeway.store.cell import block_devices, device_changes, instances
from causeway.store.database import Database

LOG = logging.getLogger(__name__)


def next_device_name(devices: list[BlockDevice]) -> str:
    """The first name that no device has: /dev/vda, /dev/vdb, ..."""
    taken = {device.device_name for device in devices}
    return next(name for letter in string.ascii_lowercase if (name := f"/dev/vd{letter}") not in taken)


def name_devices(devices: list[BlockDevice]) -> None:
    """Gives names to those that have none, in the field's order: root, ephemeral disks, swap, volumes."""
    for device in sorted(devices, key=lambda device: (not device.is_root, not device.is_ephemeral, not device.is_swap)):
        device.device_name = device.device_name or next_device_name(devices)


def make_port(
    services: ConductorServices, context: RequestContext, instance: Instance, wanted: RequestedNetwork
) -> Vif:
    """The port for a requested network: the one that was asked for, or a new one. It is not bound to a host yet."""
    if wanted.port_id is not None:
        port = services.network.show_port(context, wanted.port_id)
        return services.network.vif_of_port(context, port, tag=wanted.tag)
    assert wanted.network_id is not None
    groups: list[str] | None = None
    if instance.security_groups not in ([], ["default"]):
        # The network service gives a port its project's default group by itself.
        groups = services.network.security_group_ids(context, instance.project_id, instance.security_groups)
    return services.network.create_port(
        context,
        instance.project_id,
        instance.uuid,
        wanted.network_id,
        fixed_ip=wanted.fixed_ip,
        security_groups=groups,
        device_owner=f"compute:{instance.availability_zone or ''}",
        dns_name=instance.hostname or None,
        tag=wanted.tag,
    )


def save_devices(database: Database, instance: Instance, devices: list[BlockDevice]) -> None:
    """Writes ports and volumes down before anything is built from them."""
    with database.write() as connection:
        instances.update_in(connection, instance.uuid, network_info=instance.network_info)
        for device in devices:
            block_devices.update_in(
                connection,
                device.uuid,
                volume_id=device.volume_id,
                attachment_id=device.attachment_id,
                connection_info=device.connection_info,
                device_name=device.device_name,
            )


def save_guest(
    database: Database,
    uuid: str,
    outcome: GuestOutcome,
    *,
    expected_task: Collection[TaskState | None] | None = None,
    **changes: Any,
) -> bool:
    """Writes down what a compute reported of a guest; False if the server is gone or is to be deleted by now."""
    with database.write() as connection:
        for device in outcome.block_devices:
            block_devices.update_in(
                connection, device.uuid, attachment_id=device.attachment_id, connection_info=device.connection_info
            )
        try:
            instances.swap_in(
                connection,
                uuid,
                expected_task=expected_task,
                power_state=outcome.power_state,
                network_info=outcome.network_info,
                **changes,
            )
        except (errors.StateChanged, errors.ServerNotFound) as change:
            LOG.info("Server %s is not what it was when its guest was made: %s", uuid, change.message)
            return False
    return True


def release(
    services: ConductorServices, context: RequestContext, instance: Instance, devices: list[BlockDevice]
) -> None:
    """Gives ports and volumes back: what was made for the server is deleted, what was there before is let go."""
    for vif in instance.network_info:
        if vif.preserve_on_delete:
            services.network.unbind_port(context, vif.id)
        else:
            services.network.delete_port(context, vif.id)
    for device in devices:
        if device.attachment_id is not None:
            services.volumes.delete_attachment(context, device.attachment_id)
        if device.delete_on_termination and device.volume_id is not None and device.is_volume:
            try:
                services.volumes.delete(context, device.volume_id, ours=device.source_type != "volume")
            except (errors.ServiceFailed, errors.InvalidVolume) as failure:
                # It may have snapshots, of an image of the server for example.
                LOG.warning("Volume %s was not deleted with its server: %s", device.volume_id, failure.message)


def reserve_volume(
    services: ConductorServices,
    context: RequestContext,
    volume_id: str,
    instance_uuid: str,
    known: set[str | None],
    *,
    ours: bool = False,
) -> str:
    """Reserves a volume for a server: the id of an attachment that is not connected. ``ours``: the server has it already.

    The volume service chooses the id. If its answer is lost, the reservation may be there all the same: then it is taken.
    """
    try:
        return services.volumes.create_attachment(context, volume_id, instance_uuid, ours=ours).id
    except errors.ServiceFailed as failure:
        if isinstance(failure, errors.ServiceRefused):
            raise
        ours = admin_context(request_id=context.request_id)
        for found in services.volumes.list_attachments(ours, instance_uuid=instance_uuid, volume_id=volume_id):
            if found.id not in known and not found.is_connected:
                return found.id
        raise


def check_zone(services: ConductorServices, instance: Instance, volume: Volume) -> None:
    """Raises InvalidVolume if volumes have to be in their server's zone ([cinder] cross_az_attach) and this one is not."""
    if not services.conf.cinder.cross_az_attach and volume.availability_zone != instance.availability_zone:
        raise errors.InvalidVolume(
            f"Invalid volume: Instance {instance.uuid} and volume {volume.id} are not in the same availability_zone. "
            f"Instance is in {instance.availability_zone}. Volume is in {volume.availability_zone}"
        )


class DevicesEndpoint:
    """RPC: attach and detach volumes and ports of servers."""

    def __init__(self, services: ConductorServices) -> None:
        self._services = services

    @contextmanager
    def _changing(self, context: RequestContext, instance_uuid: str, what: str) -> Iterator[None]:
        """No move of the server begins meanwhile; raises StateChanged if one works on it already."""
        _cell, database = self._services.cells.of_server(instance_uuid)
        device_changes.go_on(database, instance_uuid, context.request_id, what)
        try:
            yield
        finally:
            try:
                device_changes.end(database, instance_uuid, context.request_id)
            except errors.DatabaseFailed as failure:
                LOG.warning(
                    "Server %s can't be moved until its %s is forgotten: %s", instance_uuid, what, failure.details
                )

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
        with self._changing(context, instance_uuid, "attach_volume"):
            return self._attach_volume(context, instance_uuid, volume_id, device, tag, delete_on_termination)

    def detach_volume(self, context: RequestContext, *, instance_uuid: str, volume_id: str) -> None:
        with self._changing(context, instance_uuid, "detach_volume"):
            self._detach_volume(context, instance_uuid, volume_id)

    def attach_interface(self, context: RequestContext, *, instance_uuid: str, requested: RequestedNetwork) -> Vif:
        with self._changing(context, instance_uuid, "attach_interface"):
            return self._attach_interface(context, instance_uuid, requested)

    def detach_interface(self, context: RequestContext, *, instance_uuid: str, port_id: str) -> None:
        with self._changing(context, instance_uuid, "detach_interface"):
            self._detach_interface(context, instance_uuid, port_id)

    def _attach_volume(
        self,
        context: RequestContext,
        instance_uuid: str,
        volume_id: str,
        device: str | None,
        tag: str | None,
        delete_on_termination: bool,
    ) -> BlockDevice:
        services = self._services
        cell, database = services.cells.of_server(instance_uuid)
        instance = instances.get(database, instance_uuid)
        present = block_devices.of_instance(database, instance_uuid)
        if device is not None and any(other.device_name == device for other in present):
            raise errors.Conflict(f"The supplied device path ({device}) is in use.")
        volume = services.volumes.show(context, volume_id)
        check_zone(services, instance, volume)
        mapping = BlockDevice(
            uuid=str(uuids.uuid4()),
            instance_uuid=instance_uuid,
            source_type="volume",
            destination_type="volume",
            device_name=device or next_device_name(present),
            volume_id=volume_id,
            volume_size=volume.size,
            multiattach=volume.multiattach,
            tag=tag,
            delete_on_termination=delete_on_termination,
            attachment_id=reserve_volume(
                services, context, volume_id, instance_uuid, {other.attachment_id for other in present}
            ),
        )
        block_devices.add(database, mapping)
        try:
            if instance.host is None:
                # Shelved and offloaded: connected when the server is brought back. As in the field it is in use all the same.
                with history.event(database, context, instance_uuid, "compute_attach_volume", ""):
                    services.volumes.complete_attachment(context, mapping.attachment_id or "")
                return mapping
            with history.event(database, context, instance_uuid, "compute_attach_volume", instance.host or ""):
                connected = services.computes(cell.uuid).attach_volume(
                    context, instance.host or "", instance=instance, block_device=mapping
                )
        except errors.CausewayError as failure:
            services.volumes.delete_attachment(context, mapping.attachment_id or "")
            block_devices.delete(database, mapping.uuid)
            if instances.find(database, instance_uuid, with_tags=False) is None:
                raise errors.ServerNotFound(instance_uuid) from failure
            raise
        block_devices.update(database, mapping.uuid, connection_info=connected.connection_info)
        return connected

    def _detach_volume(self, context: RequestContext, instance_uuid: str, volume_id: str) -> None:
        services = self._services
        cell, database = services.cells.of_server(instance_uuid)
        instance = instances.get(database, instance_uuid)
        present = block_devices.of_instance(database, instance_uuid)
        mapping = next((found for found in present if found.volume_id == volume_id), None)
        if mapping is None:
            return
        with history.event(database, context, instance_uuid, "compute_detach_volume", instance.host or ""):
            if instance.host:
                services.computes(cell.uuid).detach_volume(
                    context, instance.host, instance=instance, block_device=mapping
                )
            if mapping.attachment_id is not None:
                services.volumes.delete_attachment(context, mapping.attachment_id)
            block_devices.delete(database, mapping.uuid)

    def _attach_interface(self, context: RequestContext, instance_uuid: str, requested: RequestedNetwork) -> Vif:
        services = self._services
        cell, database = services.cells.of_server(instance_uuid)
        instance = instances.get(database, instance_uuid)
        if requested.network_id is None and requested.port_id is None:
            requested = services.network.validate_networks(context, [], 1, instance.project_id)[0]
        vif = make_port(services, context, instance, requested)
        instance.network_info.append(vif)
        asked = request_of(vif.id, requested.resource_request)
        try:
            if asked is not None:
                port_resources.claim(services, database, instance, vif, asked)
            with history.event(database, context, instance_uuid, "compute_attach_interface", instance.host or ""):
                ports = services.computes(cell.uuid).attach_interface(
                    context, instance.host or "", instance=instance, port_id=vif.id
                )
            instances.update(database, instance_uuid, network_info=ports)
        except errors.CausewayError as failure:
            instance.network_info = [vif]
            release(services, context, instance, [])
            if asked is not None:
                port_resources.settle(services, context, instance)
            # Bug 1944787: a server that was deleted meanwhile is not found, whatever failed because of that.
            if instances.find(database, instance_uuid, with_tags=False) is None:
                raise errors.ServerNotFound(instance_uuid) from failure
            raise
        return next(port for port in ports if port.id == vif.id)

    def _detach_interface(self, context: RequestContext, instance_uuid: str, port_id: str) -> None:
        services = self._services
        cell, database = services.cells.of_server(instance_uuid)
        instance = instances.get(database, instance_uuid)
        vif = next((found for found in instance.network_info if found.id == port_id), None)
        if vif is None:
            return
        with history.event(database, context, instance_uuid, "compute_detach_interface", instance.host or ""):
            services.computes(cell.uuid).detach_interface(context, instance.host or "", instance=instance, vif=vif)
            release(services, context, dataclasses.replace(instance, network_info=[vif]), [])
            if ALLOCATION in vif.profile:
                port_resources.settle(services, context, instance)
        left = [other for other in instance.network_info if other.id != port_id]
        instances.update(database, instance_uuid, network_info=left)
