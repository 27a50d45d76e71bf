"""Releases ports and volumes of servers: deletes those that were made for the server, and detaches the others.

The network service is asked which ports the server has. There may be a port that no record names, because its maker died before
it recorded it, and a recorded port may belong to another server by now. The volume service is asked only if the record of a
volume is incomplete.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any

from causeway import errors
from causeway.clients.network import is_made_for
from causeway.clients.port_owners import PortOwner
from causeway.clients.rights import SERVICE, named
from causeway.clients.volume import UNFINISHED
from causeway.context import RequestContext, admin_context
from causeway.devices.device_records import release_volume
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.network import Vif
from causeway.running.services import ConductorServices

LOG = logging.getLogger(__name__)


def release(
    services: ConductorServices,
    context: RequestContext,
    instance: Instance,
    devices: list[BlockDevice],
    *,
    kept: Collection[BlockDevice] = (),
) -> None:
    """Releases everything of a server that is being deleted or was not built. May be repeated.

    ``kept``: devices beside ``devices`` whose attachments stay. A volume that the service refuses to delete stays. Raises
    ServiceFailed if a service can't be reached.
    """
    known = {vif.id: vif for vif in instance.network_info}
    for port in services.network.ports_of_server(context, PortOwner.of(instance)):
        vif = known.get(port["id"])
        is_made = not vif.preserve_on_delete if vif is not None else is_made_for(port, instance.uuid)
        _release_port(services, context, port["id"], port.get("binding:profile"), is_made=is_made)
    volumes = [device for device in devices if device.is_volume]
    for device in volumes:
        if device.attachment_id is not None:
            release_volume(services, context, instance.uuid, device.volume_id or "", device.attachment_id)
    incomplete = [device for device in volumes if device.attachment_id is None]
    if incomplete:
        stays = {device.volume_id for device in kept}
        release_attachments(services, context, instance.uuid, kept=stays)
    for device in volumes:
        if device.volume_id is not None and device.delete_on_termination:
            _delete_volume(services, context, instance, device)
    for device in incomplete:
        if device.volume_id is None and device.source_type != "volume":
            _delete_unknown_volume(services, context, instance, device)


def release_port(services: ConductorServices, context: RequestContext, vif: Vif) -> None:
    """Releases one port of a server that stays."""
    _release_port(services, context, vif.id, vif.profile, is_made=not vif.preserve_on_delete)


def _release_port(
    services: ConductorServices,
    context: RequestContext,
    port_id: str,
    profile: Mapping[str, Any] | None,
    *,
    is_made: bool,
) -> None:
    if is_made:
        services.network.delete_port(context, port_id)
    else:
        services.network.unbind_port(context, port_id, profile)


def release_attachments(
    services: ConductorServices, context: RequestContext, uuid: str, *, kept: Collection[str | None] = ()
) -> None:
    """Deletes all attachments of a server, recorded or not, but those to the volumes ``kept``."""
    ours = admin_context(request_id=context.request_id)
    for attachment in services.volumes.attachments_of_server(context, uuid):
        if attachment.volume_id not in kept:
            services.volumes.delete_attachment(ours, attachment.id)


def _delete_volume(
    services: ConductorServices, context: RequestContext, instance: Instance, device: BlockDevice
) -> None:
    volume_id = device.volume_id or ""
    try:
        if device.source_type == "volume":
            _delete_given_volume(services, context, instance, volume_id)
        else:
            services.volumes.delete(context, volume_id)
    except errors.VolumeNotFound:
        return
    except (errors.Forbidden, errors.ServiceRefused, errors.InvalidVolume) as failure:
        # The volume may have snapshots, for example of an image of the server.
        LOG.warning("Volume %s was not deleted with its server: %s", volume_id, failure.message)


def _delete_given_volume(
    services: ConductorServices, context: RequestContext, instance: Instance, volume_id: str
) -> None:
    """Deletes a volume that a user gave to the server, if the user who deletes the server may delete it."""
    if context.auth_token:
        try:
            services.volumes.delete(context, volume_id, called_as=named(volume_id))
            return
        except errors.Unauthorized:
            LOG.info("The token of the user who deletes server %s is not valid any more", instance.uuid)
    # Our credentials may delete every volume, but the users of the server's project may not.
    if services.volumes.owner_of(volume_id) == instance.project_id:
        services.volumes.delete(context, volume_id, called_as=SERVICE)
    else:
        LOG.warning("Volume %s was not deleted with its server: it is another project's", volume_id)


def _delete_unknown_volume(
    services: ConductorServices, context: RequestContext, instance: Instance, device: BlockDevice
) -> None:
    """Deletes the unrecorded volume that was made for a device. The server never used it."""
    ours = admin_context(request_id=context.request_id)
    for volume in services.volumes.made_for(ours, instance.project_id, device.uuid):
        try:
            if volume.status in UNFINISHED:
                # The volume can't be deleted before.
                with suppress(errors.InvalidVolume):
                    services.volumes.wait_available(ours, volume.id)
            services.volumes.delete(ours, volume.id)
        except errors.VolumeNotFound:
            continue
        except (errors.ServiceRefused, errors.InvalidVolume) as failure:
            LOG.warning("Volume %s was not deleted with its server: %s", volume.id, failure.message)
