"""Makes ports and volumes for servers.

Each of them names its server in its own service. So it is found again if the answer is lost, or if the conductor dies before it
is recorded; then `causeway.devices.releasing` releases it.
"""

from __future__ import annotations

import logging

from causeway import errors
from causeway.clients.network import is_made_for
from causeway.clients.port_owners import PortOwner
from causeway.clients.rights import OF_SERVER, named
from causeway.clients.volume import MADE_FOR_DEVICE, MADE_FOR_SERVER, Volume
from causeway.context import RequestContext
from causeway.devices import device_records, half_reserved
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.network import RequestedNetwork, Vif
from causeway.requests import checked
from causeway.running.services import ConductorServices

LOG = logging.getLogger(__name__)


def make_port(
    services: ConductorServices,
    context: RequestContext,
    instance: Instance,
    wanted: RequestedNetwork,
    *,
    operation_id: str | None = None,
) -> Vif:
    """The port for a requested network: the given one, or a new one. It is not bound to a host yet."""
    if wanted.port_id is not None:
        port = services.network.show_port(context, wanted.port_id)
        return services.network.vif_of_port(context, port, tag=wanted.tag)
    assert wanted.network_id is not None
    groups: list[str] | None = None
    if instance.security_groups not in ([], ["default"]):
        # The network service adds the project's default group to a port by itself.
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
        operation_id=operation_id,
    )


def make_first_port(
    services: ConductorServices,
    context: RequestContext,
    instance: Instance,
    wanted: RequestedNetwork,
    *,
    again: bool = False,
) -> Vif:
    """`make_port` for a server that is being built, so that nothing else makes ports for it.

    If the service's answer is lost, uses the port if it was made. ``again``: an earlier attempt, which died before it recorded
    the port, may have made it too.
    """
    checked.require_network(services, context, instance.project_id, wanted)
    found = _port_that_was_made(services, context, instance, wanted) if again else None
    if found is not None:
        return found
    try:
        return make_port(services, context, instance, wanted)
    except errors.ServiceFailed as failure:
        if isinstance(failure, errors.ServiceRefused):
            raise
        found = _port_that_was_made(services, context, instance, wanted)
        if found is None:
            raise
        return found


def _port_that_was_made(
    services: ConductorServices, context: RequestContext, instance: Instance, wanted: RequestedNetwork
) -> Vif | None:
    if wanted.port_id is not None:
        return None
    known = {vif.id for vif in instance.network_info}
    for port in services.network.ports_of_server(context, PortOwner.of(instance)):
        is_it = port["network_id"] == wanted.network_id and port["id"] not in known
        if is_it and is_made_for(port, instance.uuid):
            LOG.info("Port %s of server %s was made, though the answer was lost", port["id"], instance.uuid)
            return services.network.vif_of_port(context, port, tag=wanted.tag, preserve_on_delete=False)
    return None


def make_volume(
    services: ConductorServices,
    context: RequestContext,
    instance: Instance,
    device: BlockDevice,
    *,
    again: bool = False,
    in_doubt: bool = False,
) -> None:
    """Makes the device's volume, if it needs a new one, and waits until it can be reserved.

    ``again``: an earlier attempt may have made and reserved it; ``in_doubt``: and the volume service may have been killed then.
    """
    is_new = device.volume_id is None
    if device.volume_id is None:
        volume = _volume_that_was_made(services, context, instance, device) if again else None
        if volume is None:
            volume = _make_volume(services, context, instance, device)
        device.volume_id, device.multiattach = volume.id, volume.multiattach
    if again and device.attachment_id is None:
        # Deletes unrecorded reservations of an earlier attempt.
        had = device_records.release_reservations(services, context, instance.uuid, device.volume_id, set())
        if not had and in_doubt:
            half_reserved.end(services, context, instance, device.volume_id)
    if is_new:
        services.volumes.wait_available(context, device.volume_id)


def reserve_first_volume(
    services: ConductorServices, context: RequestContext, instance: Instance, device: BlockDevice
) -> None:
    """Reserves the device's volume for a server that is being built, unless that is recorded. See `make_volume`."""
    if device.volume_id is not None and device.attachment_id is None:
        called_as = named(device.volume_id) if device.source_type == "volume" else OF_SERVER
        device.attachment_id = device_records.reserve_volume(
            services, context, device.volume_id, instance.uuid, set, called_as=called_as
        )


def _volume_that_was_made(
    services: ConductorServices, context: RequestContext, instance: Instance, device: BlockDevice
) -> Volume | None:
    for volume in services.volumes.made_for(context, instance.project_id, device.uuid):
        LOG.info("Volume %s of server %s was made, though the answer was lost", volume.id, instance.uuid)
        return volume
    return None


def _make_volume(
    services: ConductorServices, context: RequestContext, instance: Instance, device: BlockDevice
) -> Volume:
    try:
        return services.volumes.create(
            context,
            size=device.volume_size or 1,
            image_id=device.image_id if device.source_type == "image" else None,
            snapshot_id=device.snapshot_id if device.source_type == "snapshot" else None,
            volume_type=device.volume_type,
            availability_zone=None if services.conf.cinder.cross_az_attach else instance.availability_zone,
            metadata={MADE_FOR_SERVER: instance.uuid, MADE_FOR_DEVICE: device.uuid},
        )
    except errors.Unauthorized as failure:
        raise errors.OperationFailed(
            "The server's volume could not be made for its user: the token of the request that asked for the server is not"
            " valid any more. Delete this server and create it again.",
            details=failure.message,
        ) from failure
    except errors.ServiceFailed as failure:
        if isinstance(failure, errors.ServiceRefused):
            raise
        volume = _volume_that_was_made(services, context, instance, device)
        if volume is None:
            raise
        return volume
