"""Disks and volumes of one guest beside its record; folders and mounts of a host."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import PurePosixPath

from causeway.adopt.hosts.recorded import CONFIG_DRIVE, ROOT_DISK, RecordedHost, RecordedServer
from causeway.model.adoption import Finding
from causeway.model.found_host import FoundDisk, FoundFolder, FoundGuest, FoundHypervisor
from causeway.model.states import PowerState

RBD = "rbd"
_GIB = 2**30
_NO_DISKS = frozenset({"cdrom", "floppy"})
_MOVE = "Move the server in Nova to a host with qcow2 files, or leave this host to Nova."


def disks(found: FoundHypervisor, server: RecordedServer, guest: FoundGuest) -> Iterator[Finding]:
    left = [disk for disk in guest.disks if disk.source is not None]
    for name in server.local_disks():
        disk = next((each for each in left if _is_local(found, server.uuid, name, each)), None)
        if disk is not None:
            left.remove(disk)
            yield from _local(found, server, name, disk)
        # The guest of a rescue has the rescue's disks, and perhaps not all of the server's.
        elif not (server.is_rescued and _is_in_folder(found, server.uuid, name)):
            yield Finding(
                "disk.missing",
                server.uuid,
                f"Its guest has no disk {_place(found, server.uuid, name)}.",
                "Set instances_path of the compute service to Nova's. If that is right, look where the disk is.",
            )
    missing = set(server.volumes)
    for disk in left:
        if disk.serial in missing:
            missing.discard(disk.serial)
            yield from _volume(found, server, guest, disk)
        elif not _is_expected(found, server, disk):
            yield Finding(
                "disk.unknown",
                server.uuid,
                f"Its guest has a disk {disk.target} ({disk.source}) that no record names.",
                "Detach it in Nova if it is a volume; else look what it is.",
            )
    for volume in sorted(missing) if not server.is_rescued else ():
        yield Finding(
            "volume.missing",
            server.uuid,
            f"Its guest lacks volume {volume}.",
            "Detach or attach it in Nova, or reboot the server hard in Nova; then import again.",
        )


def _place(found: FoundHypervisor, uuid: str, name: str) -> str:
    return str(PurePosixPath(found.instances_path) / uuid / name)


def _is_local(found: FoundHypervisor, uuid: str, name: str, disk: FoundDisk) -> bool:
    if disk.kind == "file":
        return disk.source == _place(found, uuid, name)
    # An image in a pool, or a logical volume.
    return disk.serial is None and PurePosixPath(disk.source or "").name == f"{uuid}_{name}"


def _is_in_folder(found: FoundHypervisor, uuid: str, name: str) -> bool:
    return any(folder.name == uuid and any(file.name == name for file in folder.files) for folder in found.folders)


def _is_expected(found: FoundHypervisor, server: RecordedServer, disk: FoundDisk) -> bool:
    name = PurePosixPath(disk.source or "").name
    if disk.kind != "file":
        name = name.removeprefix(f"{server.uuid}_")
        return disk.serial is None and (disk.device in _NO_DISKS or server.may_have(name))
    return disk.source == _place(found, server.uuid, name) and server.may_have(name)


def _local(found: FoundHypervisor, server: RecordedServer, name: str, disk: FoundDisk) -> Iterator[Finding]:
    uuid = server.uuid
    if disk.lack:
        yield Finding("disk.unreadable", uuid, f"Its disk {name} can't be read: {disk.lack}.", "Look at the file.")
        return
    if disk.is_encrypted:
        yield Finding("disk.encrypted", uuid, f"Its disk {name} is encrypted, which Causeway does not do.", _MOVE)
    kind = _kind(disk)
    if kind not in found.stores:
        yield Finding(
            "disk.format",
            uuid,
            f"Its disk {name} is {kind}; the host's compute service has {', '.join(found.stores)}.",
            "Set [libvirt] images_type and images_rbd_pool as Nova has them." if kind == RBD else _MOVE,
        )
        return
    if not disk.is_base_there:
        yield Finding(
            "base.missing", uuid, f"{disk.base}, on which its disk {name} stands, is not there.", "Restore the file."
        )
    if name == ROOT_DISK:
        yield from _root(server, disk)


def _kind(disk: FoundDisk) -> str:
    if disk.kind == "file":
        return disk.disk_format or "of an unknown format"
    if disk.kind == "network":
        return disk.protocol or "of an unknown protocol"
    return "a block device (LVM)"


def _root(server: RecordedServer, disk: FoundDisk) -> Iterator[Finding]:
    image = server.instance.image_ref
    # The second one is Causeway's, below the server's disk if it moved before its host was handed back.
    if disk.base is not None and PurePosixPath(disk.base).name not in (base_of(image), image):
        yield Finding(
            "base.unknown",
            server.uuid,
            f"Its root disk stands on {disk.base}, which is not that of its image {image or '(none)'}.",
            "When it moves, all of the disk travels.",
            blocks=False,
        )
    wanted = server.instance.flavor.root_gb * _GIB
    if disk.size is not None and disk.size < wanted:
        yield Finding(
            "disk.small",
            server.uuid,
            f"Its root disk has {disk.size} bytes; its flavor says {wanted}.",
            "A move refuses a disk that is smaller than its flavor: resize it in Nova.",
            blocks=False,
        )


def base_of(image_id: str) -> str:
    """The name of the file in which Nova keeps an image."""
    return hashlib.sha1(image_id.encode(), usedforsecurity=False).hexdigest()


def _volume(found: FoundHypervisor, server: RecordedServer, guest: FoundGuest, disk: FoundDisk) -> Iterator[Finding]:
    if disk.is_encrypted:
        yield Finding(
            "volume.encrypted",
            server.uuid,
            f"Volume {disk.serial} is encrypted; nobody has tried yet to take such a guest over.",
            "Detach it in Nova, or leave this host to Nova.",
        )
    if disk.kind != "file":
        return
    folder = str(PurePosixPath(disk.source or "").parent)
    if not PurePosixPath(folder).is_relative_to(found.mount_base):
        yield Finding(
            "volume.elsewhere",
            server.uuid,
            f"Volume {disk.serial} is {disk.source}, and the compute service mounts shares below {found.mount_base}.",
            "Set [libvirt] nfs_mount_point_base of the compute service to Nova's.",
        )
    elif guest.power_state in (PowerState.RUNNING, PowerState.PAUSED) and not _is_mounted(found, folder):
        yield Finding(
            "mount.missing",
            server.uuid,
            f"Volume {disk.serial} is in {folder}, and nothing is mounted there.",
            "Look whether the compute service sees the host's mounts (its mount namespace).",
        )


def _is_mounted(found: FoundHypervisor, folder: str) -> bool:
    return any(PurePosixPath(folder).is_relative_to(mount) for mount in found.mounts)


def folders(found: FoundHypervisor, known: set[str]) -> Iterator[Finding]:
    """Folders of guests that no server of the host has."""
    for folder in found.folders:
        uuid = folder.name.partition("_")[0]
        if uuid not in known or folder.name != uuid:
            yield _orphaned(folder, uuid, is_known=uuid in known)


def _orphaned(folder: FoundFolder, uuid: str, *, is_known: bool) -> Finding:
    what = "was kept by a resize, or is being deleted" if is_known else "belongs to no server of this host"
    return Finding(
        "folder.orphaned",
        uuid,
        f"The folder {folder.name} with {len(folder.files)} files {what}.",
        "Nova deletes such folders only at times. `causeway audit` will list it, and deletes nothing by itself.",
        blocks=False,
    )


def mounts(found: FoundHypervisor, recorded: RecordedHost) -> Iterator[Finding]:
    """Mounts for volumes that no guest of the host has."""
    sources = [disk.source for guest in found.guests for disk in guest.disks if disk.kind == "file" and disk.source]
    for mount in found.mounts:
        if not any(PurePosixPath(source).is_relative_to(mount) for source in sources):
            yield Finding(
                "mount.unused",
                recorded.host,
                f"{mount} is mounted, and no guest uses it.",
                "Unmount it when Nova has gone.",
                blocks=False,
            )


__all__ = ["CONFIG_DRIVE", "base_of", "disks", "folders", "mounts"]
