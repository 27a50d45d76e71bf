"""Attaches and detaches volumes and ports of existing guests."""

from __future__ import annotations

from causeway import errors
from causeway.compute.guests import guest
from causeway.compute.host import Host
from causeway.context import RequestContext
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.network import Vif
from causeway.virt.undo import undone_on_failure


def attach_volume(host: Host, context: RequestContext, instance: Instance, block_device: BlockDevice) -> BlockDevice:
    with (
        host.lock(instance.uuid),
        undone_on_failure() as undo,
        guest.connected_volumes(host, context, [block_device]) as (connected,),
    ):
        host.driver.attach_volume(instance.uuid, connected)
        # If this fails, the caller deletes the attachment.
        undo.callback(host.driver.detach_volume, instance.uuid, connected)
    return connected


def detach_volume(host: Host, context: RequestContext, instance: Instance, block_device: BlockDevice) -> None:
    """Detaches a volume. Also succeeds if the guest does not have the volume, or there is no guest."""
    with host.lock(instance.uuid):
        # Only the volume service knows how an interrupted attach has connected the volume.
        (connected,) = guest.with_connections(host, context, [block_device])
        host.driver.detach_volume(instance.uuid, connected)


def attach_port(host: Host, context: RequestContext, instance: Instance, port_id: str) -> list[Vif]:
    """Binds a port to the host and attaches it. Returns the server's ports."""
    with host.lock(instance.uuid), host.vif_events.watch(instance.uuid):
        vif = next(vif for vif in instance.network_info if vif.id == port_id)
        guest.bind_port(host, context, instance, vif)
        vifs = guest.refreshed_ports(host, context, instance)
        host.driver.attach_interface(instance.uuid, next(vif for vif in vifs if vif.id == port_id))
        return vifs


def detach_port(host: Host, instance: Instance, vif: Vif) -> None:
    """Detaches a port, if the guest has it."""
    with host.lock(instance.uuid):
        try:
            host.driver.detach_interface(instance.uuid, vif)
        except errors.NotImplementedHere:
            # A driver without this can't attach ports either, so a port that no record names was never attached.
            if any(port.id == vif.id for port in instance.network_info):
                raise
        host.claims.release_device(instance.uuid, vif.id)
