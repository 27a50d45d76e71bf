"""Makes the guest of a server anew: rebuild, evacuate, unshelve."""

from __future__ import annotations

from causeway.compute.disks.wanted_disks import local_disks
from causeway.compute.guests import guest, plugging
from causeway.compute.guests.build import claimed
from causeway.compute.guests.root_images import find_stored, root_disk_of
from causeway.compute.host import Host
from causeway.context import RequestContext
from causeway.model.block_device import BlockDevice, is_volume_backed
from causeway.model.image import RAW
from causeway.model.instance import Instance
from causeway.model.outcomes import GuestOutcome
from causeway.virt import image_formats
from causeway.virt.driver import ROOT_DISK, BaseImage, Progress, RootDisk, no_progress


def rebuild(
    host: Host,
    context: RequestContext,
    instance: Instance,
    block_devices: list[BlockDevice],
    snapshot_id: str | None,
    *,
    power_on: bool,
    progress: Progress = no_progress,
    dead_host: str | None = None,
) -> GuestOutcome:
    """Makes the guest anew, from the image ``snapshot_id`` or the server's own.

    ``progress`` reports the image's download, if it is not on the host yet. ``dead_host``: the guest is made from the disks that
    this host kept in storage that both reach, if there are any.
    """
    with (
        host.lock(instance.uuid),
        host.vif_events.watch(instance.uuid) as watch,
        claimed(host, instance) as instance,
    ):
        try:
            kept: list[str] = []
            if dead_host is not None:
                # What an earlier attempt has taken over is returned first.
                _destroy_with_disks(host, instance, block_devices)
                kept = host.driver.take_over_disks(instance.uuid, local_disk_names(host, block_devices), dead_host)
            # Fetches first: a failed download must not destroy the present guest.
            root_disk = (
                None
                if is_volume_backed(block_devices) or ROOT_DISK in kept
                else _root_disk(host, context, instance, snapshot_id, progress)
            )
            if dead_host is None:
                _destroy_with_disks(host, instance, block_devices)
            for vif in instance.network_info:
                guest.bind_port(host, context, instance, vif)
            vifs = guest.refreshed_ports(host, context, instance)
            with guest.connected_volumes(host, context, block_devices) as volumes:
                power_state = host.driver.spawn(
                    guest.spec_of(
                        host,
                        context,
                        instance,
                        vifs,
                        volumes,
                        block_devices=block_devices,
                        root_disk=root_disk,
                        power_on=power_on,
                    ),
                    vifs_plugged=plugging.before_start(host, watch, vifs if power_on else []),
                )
        finally:
            host.image_cache.discard_received(instance.uuid)
        return GuestOutcome(
            power_state,
            guest.refreshed_ports(host, context, instance),
            volumes,
            numa_topology=instance.numa_topology,
            pci_devices=instance.pci_devices,
            machine_type=host.driver.machine_type(instance),
            guest_name=guest.name_here(host, instance),
        )


def _root_disk(
    host: Host, context: RequestContext, instance: Instance, snapshot_id: str | None, progress: Progress
) -> RootDisk:
    size_gb = instance.flavor.root_gb
    if snapshot_id is None:
        return root_disk_of(host, context, instance.image_ref, size_gb, progress)
    stored = find_stored(host, context, snapshot_id, size_gb)
    if stored is not None:
        return RootDisk(base=None, base_image_id=None, size_gb=size_gb, stored_image=stored, stands_alone=True)
    path = host.image_cache.received(snapshot_id, instance.uuid)
    image = host.images.download(context, snapshot_id, path, progress)
    said = image.disk_format or "of no format"
    if said == RAW:
        size = path.stat().st_size
        image_formats.check_size(f"Image {snapshot_id}", size, host.image_cache.most_bytes(size_gb))
        return RootDisk(BaseImage(path, RAW, size), base_image_id=None, size_gb=size_gb, stands_alone=True)
    return RootDisk(base=None, base_image_id=None, snapshot=path, snapshot_format=said, size_gb=size_gb)


def local_disk_names(host: Host, block_devices: list[BlockDevice]) -> list[str]:
    names = [] if is_volume_backed(block_devices) else [ROOT_DISK]
    return names + [disk.name for disk in local_disks(host.conf, block_devices)]


def _destroy_with_disks(host: Host, instance: Instance, block_devices: list[BlockDevice]) -> None:
    driver = host.driver
    facts = driver.inspect(instance.uuid)
    if facts.power_state is not None or facts.has_disks:
        connected = [device for device in guest.volumes_of(block_devices) if device.connection_info is not None]
        driver.destroy(instance.uuid, instance.network_info, connected, destroy_disks=True)
    driver.delete_disks(instance.uuid)
    # A move that this host missed the end of may have left them. They would be in the way of the next one.
    driver.delete_stashed_disks(instance.uuid)
