"""What the target of a live migration makes before the guest arrives: empty disks, which the source's hypervisor fills.

A folder that was made for this has the file ``incoming``, until a call at this host starts the guest or keeps its disks. Disks
are made again only in a folder with this file. So an order to prepare the target that arrives late empties no disk of a guest.
"""

from __future__ import annotations

from pathlib import Path

from causeway import durable
from causeway.errors import GuestFailed, GuestRefused
from causeway.virt.driver import ROOT_DISK, GuestSpec
from causeway.virt.libvirt.storage.disks import InstanceDisks
from causeway.virt.live_guest import LiveSource, Presence

_INCOMING = "incoming"
_MIB = 2**20


def make_disks(
    disks: InstanceDisks, spec: GuestSpec, source: LiveSource, shown: Presence, *, is_shared: bool = False
) -> None:
    """Makes empty disks for a guest that will arrive, unless they are shared. ``shown``: what the hypervisor here shows of it.

    Raises `GuestFailed` if the server has disks or a guest here already, or if a base image is missing, and `GuestRefused` for a
    disk that is not the server's, or is larger.
    """
    uuid, root = spec.instance.uuid, spec.root_disk
    if shown in (Presence.INCOMING, Presence.PAUSED_FOR_MIGRATION) or shown.is_alive:
        return
    folder = disks.folder(uuid)
    marker = folder / _INCOMING
    if shown is not Presence.ABSENT or (not marker.exists() and (any(folder.glob("disk*")) or disks.in_storage(uuid))):
        raise GuestFailed(
            f"Server {uuid} has a guest or disks on the target of its migration already; nothing is written over them.",
            details=f"the hypervisor shows the guest {shown}; {folder}",
        )
    most, bases = _most(disks, spec), {}
    for disk in source.disks:
        base = root if disk.base_image_id else None
        if disk.base_image_id and (base is None or base.base is None or base.base_image_id != disk.base_image_id):
            raise GuestFailed(
                f"The image that disk {disk.name[:80]} of server {uuid} stands on is not on the target of its migration.",
                details=f"image {disk.base_image_id}",
            )
        bases[disk.name] = base
        if not 0 < disk.size <= most.get(disk.name, 0):
            raise GuestRefused(
                f"The source names a disk of server {uuid} that the server does not have, or that is larger there.",
                details=f"{disk.name[:80]!r} of {disk.size} bytes; the server's are {most}",
            )
    disks.make_folder(uuid)
    durable.write(marker, b"")
    if is_shared:
        disks.await_guest(uuid, source.shared)
        return
    for disk in source.disks:
        disks.create_empty(uuid, disk.name, disk.size, bases[disk.name])


def _most(disks: InstanceDisks, spec: GuestSpec) -> dict[str, int]:
    """Name -> bytes, of the local disks that the server has by its records."""
    most = {local.name: local.size_mb * _MIB for local in spec.local_disks}
    if spec.root_disk is not None:
        most[ROOT_DISK] = disks.most_bytes(spec.root_disk)
    return most


def is_no_attempt(folder: Path) -> None:
    """From now on the disks in the folder belong to the guest, even if they were made for one that would arrive."""
    if (folder / _INCOMING).exists():
        durable.delete(folder / _INCOMING)
