"""What the target of a live migration makes before the guest arrives: empty disks, which the source's hypervisor fills.

A folder that was made for this has the file ``incoming``, until a call at this host starts the guest or keeps its disks. Disks
are made again only in a folder with this file. So an order to prepare the target that arrives late empties no disk of a guest.
"""

from __future__ import annotations

from pathlib import Path

from causeway import durable
from causeway.errors import GuestFailed, ImageRefused
from causeway.virt.driver import ROOT_DISK, GuestSpec
from causeway.virt.image_formats import check_size
from causeway.virt.libvirt.storage.disks import InstanceDisks
from causeway.virt.live import LiveSource, Presence

_INCOMING = "incoming"


def make_disks(disks: InstanceDisks, spec: GuestSpec, source: LiveSource, shown: Presence) -> None:
    """Makes empty disks for a guest that will arrive. ``shown``: what the hypervisor here shows of it.

    Raises `GuestFailed` if the server has disks or a guest here already, or if a base image is missing; `ImageRefused` if the
    source names a disk that the server does not have, or one that is larger than the server's.
    """
    uuid, root = spec.instance.uuid, spec.root_disk
    most = {disk.name: disk.size_mb << 20 for disk in spec.local_disks}
    if root is not None:
        most[ROOT_DISK] = disks.most_bytes(root)
    if shown in (Presence.INCOMING, Presence.PAUSED_FOR_MIGRATION) or shown.is_alive:
        return
    folder = disks.folder(uuid)
    marker = folder / _INCOMING
    if shown is not Presence.ABSENT or (folder.exists() and not marker.exists() and any(folder.glob("disk*"))):
        raise GuestFailed(
            f"Server {uuid} has a guest or disks on the target of its migration already; nothing is written over them.",
            details=f"the hypervisor shows the guest {shown}; {folder}",
        )
    disks.make_folder(uuid)
    durable.write(marker, b"")
    for disk in source.disks:
        if disk.name not in most:
            raise ImageRefused(f"The source names a disk '{disk.name}' that server {uuid} does not have.")
        check_size(f"Disk {disk.name} of server {uuid}", disk.size, most[disk.name])
        base = root if disk.base_image_id else None
        if disk.base_image_id and (base is None or base.base is None or base.base_image_id != disk.base_image_id):
            raise GuestFailed(
                f"The image that disk {disk.name} of server {uuid} stands on is not on the target of its migration.",
                details=f"image {disk.base_image_id}",
            )
        disks.create_empty(uuid, disk.name, disk.size, base)


def is_no_attempt(folder: Path) -> None:
    """From now on the disks in the folder belong to the guest, even if they were made for one that would arrive."""
    if (folder / _INCOMING).exists():
        durable.delete(folder / _INCOMING)
