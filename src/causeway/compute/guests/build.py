"""Makes and destroys guests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from causeway.compute.guests import guest, plugging
from causeway.compute.guests.root_images import root_disk_of
from causeway.compute.host import Host
from causeway.context import RequestContext
from causeway.model.block_device import BlockDevice, is_volume_backed
from causeway.model.instance import Instance
from causeway.model.outcomes import GuestOutcome
from causeway.virt.undo import undone_on_failure


def build(host: Host, context: RequestContext, instance: Instance, block_devices: list[BlockDevice]) -> GuestOutcome:
    """Makes a new guest. Its ports (``instance.network_info``) exist but are not bound, and its volumes are reserved."""
    with (
        host.lock(instance.uuid),
        host.vif_events.watch(instance.uuid) as watch,
        claimed(host, instance) as instance,
        host.failed_builds.counted(),
    ):
        host.require_open()
        for vif in instance.network_info:
            guest.bind_port(host, context, instance, vif)
        vifs = guest.refreshed_ports(host, context, instance)
        root_disk = None
        if not is_volume_backed(block_devices):
            root_disk = root_disk_of(host, context, instance.image_ref, instance.flavor.root_gb)
        with guest.connected_volumes(host, context, block_devices) as volumes:
            power_state = host.driver.spawn(
                guest.spec_of(host, context, instance, vifs, volumes, block_devices=block_devices, root_disk=root_disk),
                vifs_plugged=plugging.before_start(host, watch, vifs),
            )
        return GuestOutcome(
            power_state,
            guest.refreshed_ports(host, context, instance),
            volumes,
            numa_topology=instance.numa_topology,
            pci_devices=instance.pci_devices,
            machine_type=host.driver.machine_type(instance),
            guest_name=guest.name_here(host, instance),
        )


def destroy(host: Host, instance: Instance, block_devices: list[BlockDevice]) -> None:
    """Destroys a guest with all its disks, including stashed ones, and disconnects its volumes."""
    driver = host.driver
    with host.lock(instance.uuid):
        driver.destroy(instance.uuid, instance.network_info, guest.volumes_of(block_devices), destroy_disks=True)
        driver.delete_disks(instance.uuid)
        driver.delete_stashed_disks(instance.uuid)
        host.claims.release_all(instance.uuid)
        host.departures.discard(instance.uuid)
        host.offers.end_all(instance.uuid)
        host.rounds.discard_all(instance.uuid)
        host.copies.discard_all(instance.uuid)
        # Deletes the file of an image download that was interrupted when the host died.
        host.image_cache.discard_received(instance.uuid)


@contextmanager
def claimed(host: Host, instance: Instance) -> Iterator[Instance]:
    """Yields the server with its claim, which is released if the block fails."""
    claims = host.claims
    held_before = claims.holds(instance.uuid)
    claims.claim(instance, None)
    with undone_on_failure() as undo:
        if not held_before:
            undo.callback(claims.release, instance.uuid, None)
        yield claims.use(instance, None)
