"""The local disks of guests on one host, as files in their folders.

::

    INSTANCES/UUID/disk            root disk, qcow2, on the base image if there is one
    INSTANCES/UUID/disk.eph0       ephemeral disk; disk.swap: swap (see `blank_disks`)
    INSTANCES/UUID/disk.rescue     what the guest boots while it is rescued, on the rescue image
    INSTANCES/UUID/disk.info       the id of the base image (JSON)

What else is in these folders is in `folders`. A file is made under another name and renamed when it is complete, so a file named
``disk`` is always complete.

`rbd_disks` keeps disks in a pool of Ceph instead. What the driver asks of either is what is public here.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from hashlib import sha1
from pathlib import Path
from typing import Any

from causeway import durable
from causeway.errors import DiskTransferFailed, GuestFailed
from causeway.model.image import QCOW2
from causeway.model.shared_disk import SharedDisk, StoredDisk
from causeway.virt import image_formats
from causeway.virt.driver import (
    RESCUE_DISK,
    ROOT_DISK,
    SWAP_DISK,
    BaseImage,
    DiskCopy,
    DiskExport,
    ExpectedDisk,
    LocalDisk,
    RootDisk,
    StoredImage,
)
from causeway.virt.driver.support import unsupported
from causeway.virt.libvirt.guest_xml.rbd_source import RbdSource
from causeway.virt.libvirt.storage import blank_disks, disk_readers, qemu_img
from causeway.virt.libvirt.storage.folders import InstanceFolders
from causeway.virt.libvirt.storage.received_disks import take
from causeway.virt.warm import DiskWriter

_GIB = 2**30


@dataclass
class InstanceDisks(InstanceFolders):
    """The disks in ``directory``. ``timeout``: seconds for whatever reads or writes a whole disk."""

    def source(self, uuid: str, name: str) -> Path | RbdSource:
        """Where the guest opens a disk, whether it exists or not."""
        return self.folder(uuid) / name

    def disk_format(self, uuid: str, name: str) -> str:  # noqa: ARG002
        return QCOW2

    def has(self, uuid: str, name: str) -> bool:
        return (self.folder(uuid) / name).exists()

    def root(self, uuid: str) -> Path:
        return self.folder(uuid) / "disk"

    def rescue(self, uuid: str) -> Path:
        return self.folder(uuid) / RESCUE_DISK

    def room(self, *, over_commit: bool) -> int:
        """Bytes that are free. Without over-commit, minus what the disks on this host may still grow by."""
        free: int = shutil.disk_usage(self.directory).free
        if over_commit:
            return free
        for path in self.directory.glob("*/disk*"):
            if path.name in (ROOT_DISK, SWAP_DISK, RESCUE_DISK) or path.name.startswith("disk.eph"):
                info = qemu_img.info(path)
                free -= max(0, int(info["virtual-size"]) - int(info["actual-size"]))
        return free

    def create_root(self, uuid: str, wanted: RootDisk) -> None:
        """Makes the root disk as `RootDisk` says. A disk that exists stays, unless there is a snapshot. May be repeated.

        Raises `GuestFailed` if the base image is missing, `DiskTransferFailed` if the snapshot is, and `ImageRefused` if it is
        not what it was said to be, or larger than the server's disk may be.
        """
        if wanted.shared is not None or wanted.stored_image is not None:
            details = str(wanted.shared or wanted.stored_image)
            raise GuestFailed("This host has no storage that it shares with others.", details=details)
        self.make_folder(uuid)
        disk = self.root(uuid)
        received = disk.with_name("disk.received")
        if wanted.snapshot is not None and wanted.snapshot.exists():
            take(wanted.snapshot, wanted.snapshot_format, received, self.timeout, most=self.most_bytes(wanted))
        if received.exists():
            self._settle(received, wanted)
            self._write_info(uuid, wanted)
            durable.settle(received, disk)
        elif disk.exists():
            # Perhaps a process was killed right after it had given the disk its name.
            durable.sync(disk.parent)
        elif wanted.snapshot is not None:
            raise DiskTransferFailed(f"The root disk of server {uuid} was not received.", details=str(wanted.snapshot))
        elif wanted.base is not None:
            partial, size = disk.with_name("disk.partial"), max(wanted.size_gb * _GIB, wanted.base.virtual_size)
            if wanted.stands_alone:
                qemu_img.from_raw(wanted.base.path, partial, self.timeout)
                qemu_img.grow(partial, size)
            else:
                qemu_img.create(partial, size, _existing(wanted.base))
            self._write_info(uuid, wanted)
            durable.settle(partial, disk)
        else:
            raise GuestFailed(f"Server {uuid} has neither an image nor a snapshot to make its root disk from.")

    def make_local(self, uuid: str, wanted: LocalDisk) -> None:
        """Makes an ephemeral disk or swap, or changes the one that exists, as `LocalDisk` says. May be repeated."""
        if wanted.shared is not None:
            raise GuestFailed("This host has no storage that it shares with others.", details=str(wanted.shared))
        blank_disks.create(self.folder(uuid) / wanted.name, wanted, self.timeout)

    def create_empty(self, uuid: str, name: str, size: int, root: RootDisk | None) -> None:
        """Makes a disk of exactly ``size`` bytes, empty or on the base image of ``root``. Replaces an existing disk."""
        disk = self.folder(uuid) / name
        partial = disk.with_name(f"{name}.partial")
        base = None
        if root is not None and root.base is not None:
            base = _existing(root.base)
            self._write_info(uuid, root)
        qemu_img.create(partial, size, base)
        durable.settle(partial, disk)

    def create_rescue(self, uuid: str, base: BaseImage) -> None:
        """Makes the rescue disk on the image ``base``. A guest that uses a former one keeps that file, which has no name then."""
        partial = self.rescue(uuid).with_name(f"{RESCUE_DISK}.partial")
        qemu_img.create(partial, base.virtual_size, _existing(base))
        durable.settle(partial, self.rescue(uuid))

    def check_usable(self, uuid: str) -> None:
        """Called before a guest starts with its disks.

        Raises `GuestFailed` if one of them stands on a file whose format is not known, as from release 0.1.0.
        """
        for path in (self.root(uuid), self.rescue(uuid)):
            if path.exists():
                qemu_img.layer_below(path)

    @contextmanager
    def export(self, uuid: str, name: str, *, image_ref: str, flatten: bool) -> Iterator[DiskExport]:
        """A copy of a disk: what differs from its base image, or (``flatten``) everything.

        The copy names no backing file, because image services refuse images that do. If it is not known on which image the disk
        stands, the copy has everything. ``image_ref``: the server's image. Raises `GuestFailed` if there is no such disk.
        """
        folder = next((path for path in (self.folder(uuid), self.stashed_folder(uuid)) if (path / name).exists()), None)
        if folder is None:
            raise GuestFailed(f"Server {uuid} has no disk '{name}' on this host.")
        disk = folder / name
        base = qemu_img.layer_below(disk)
        base_image_id = None if flatten else self._image_below(folder, name, base, image_ref)
        with self.new_export(uuid, name) as copy:
            qemu_img.copy(disk, copy, base if base_image_id is not None else None, self.timeout)
            yield DiskExport(name, copy, QCOW2, copy.stat().st_size, base_image_id)

    def base_image_of(self, uuid: str, image_ref: str) -> str | None:
        """The id of the image below the root disk; None: the disk stands alone, or nobody knows on which image.

        ``image_ref``: see `export`.
        """
        below = qemu_img.layer_below(self.root(uuid))
        return self._image_below(self.folder(uuid), ROOT_DISK, below, image_ref)

    def stands_on_unknown(self, uuid: str, name: str, image_ref: str) -> bool:
        """Whether a disk stands on a file of which nobody knows what image it is, so that only all of it can be copied."""
        folder = self.folder(uuid)
        below = qemu_img.layer_below(folder / name)
        return below is not None and self._image_below(folder, name, below, image_ref) is None

    def _image_below(self, folder: Path, name: str, below: qemu_img.Layer | None, image_ref: str) -> str | None:
        if below is None or name != ROOT_DISK:
            return None
        recorded: str | None = self._read_info(folder).get("base_image_id")
        if recorded is None and below.path.name in _names_of(image_ref):
            return image_ref
        return recorded

    # of copies that come round by round: see `WarmCopyMethods`

    def open_copy(self, copy: DiskCopy) -> AbstractContextManager[DiskWriter]:
        return disk_readers.open_copy(copy.path, copy.size, copy.base)

    def has_copy(self, path: Path) -> bool:
        return path.exists()

    def discard_copy(self, path: Path) -> None:
        pass

    @contextmanager
    def export_beside_guest(self, uuid: str, name: str, copy: Callable[[Path, Path], None]) -> Iterator[DiskExport]:
        """A copy of a disk that a guest uses. ``copy(disk, target)`` writes all of it to the file ``target``."""
        with self.new_export(uuid, name) as path:
            copy(self.folder(uuid) / name, path)
            yield DiskExport(name, path, QCOW2, path.stat().st_size)

    # of a move

    def stash(self, uuid: str) -> None:
        if self.folder(uuid).exists() and not self.stashed_folder(uuid).exists():
            durable.sync_tree(self.folder(uuid))
            durable.rename(self.folder(uuid), self.stashed_folder(uuid))
        elif self.directory.exists():
            # Already stashed, perhaps by a process that was killed before it synced the directory.
            durable.sync(self.directory)

    def restore(self, uuid: str) -> None:
        if not self.stashed_folder(uuid).exists():
            if self.directory.exists():
                durable.sync(self.directory)
            return
        folder = self.folder(uuid)
        if any((folder / disk).exists() for disk in (ROOT_DISK, SWAP_DISK)) or any(folder.glob("disk.eph*")):
            raise GuestFailed(f"The disks of server {uuid} can't be put back: others are in their place.")
        # A folder without disks belongs to an attempt, or to a guest whose root disk is a volume.
        if folder.exists():
            durable.delete_tree(folder)
        durable.rename(self.stashed_folder(uuid), folder)

    def delete_stashed(self, uuid: str) -> None:
        self._delete(self.stashed_folder(uuid))

    def delete(self, uuid: str) -> None:
        self._delete(self.folder(uuid))

    def _delete(self, folder: Path) -> None:
        try:
            durable.delete_tree(folder)
        except OSError as error:
            raise GuestFailed("The disks of the server could not be deleted.", details=str(error)) from error

    # in storage that several hosts reach

    #: what is there are no files: the storage itself makes copies and images (`export_from_storage`, `store_image`), and a disk
    #: that arrives live stands on no base image
    copies_itself = False

    def start(self) -> None:
        """Called before all else."""

    def export_from_storage(
        self,
        uuid: str,  # noqa: ARG002
        name: str,
        still: AbstractContextManager[None],  # noqa: ARG002
    ) -> AbstractContextManager[DiskExport]:
        """A copy of a disk that a guest uses, as it is at one instant. ``still``: keeps the guest's file systems still then."""
        raise GuestFailed(f"Disk {name} is in no storage that several hosts reach.")

    def storage(self) -> str | None:
        """Where new disks are made, if other hosts reach it."""
        return None

    def stored_image(self, location: str) -> StoredImage | None:  # noqa: ARG002
        return None

    def store_image(
        self,
        uuid: str,  # noqa: ARG002
        name: str,  # noqa: ARG002
        image_id: str,  # noqa: ARG002
        beside: str,  # noqa: ARG002
        still: AbstractContextManager[None],  # noqa: ARG002
    ) -> StoredImage | None:
        """``still``: keeps the guest's file systems still at the instant that the image shows."""
        return None

    def delete_stored_image(self, image_id: str, beside: str) -> None:
        pass

    def in_storage(self, uuid: str, *, stashed: bool = False) -> set[str]:  # noqa: ARG002
        """The names of the guest's disks that other hosts may reach."""
        return set()

    def offered(self, uuid: str) -> dict[str, SharedDisk]:  # noqa: ARG002
        """See `Driver.shared_disks`; so for the others."""
        return {}

    def size_in_storage(self, uuid: str, name: str) -> int:  # noqa: ARG002
        """The bytes that the guest sees of a disk that is there."""
        raise GuestFailed(f"Disk {name} is in no storage that several hosts reach.")

    def reaches(self, offered: dict[str, SharedDisk]) -> bool:  # noqa: ARG002
        return False

    def list_storage(self) -> list[StoredDisk]:
        return []

    def remove_from_storage(self, name: str) -> None:
        raise unsupported(f"delete {name}: they keep no disks in storage that several hosts share")

    def await_guest(self, uuid: str, offered: dict[str, SharedDisk]) -> None:  # noqa: ARG002
        """Makes the disks of a guest that is arriving live reachable. They stay its source's until `settle`."""
        raise GuestFailed("This host has no storage that it shares with others.", details=str(offered))

    def settle(self, uuid: str) -> None:
        pass

    def take_over(self, uuid: str, names: list[str], dead_host: str) -> list[str]:  # noqa: ARG002
        return []

    def faults_in_storage(self, uuid: str, disks: list[ExpectedDisk], *, stashed: bool) -> list[str]:  # noqa: ARG002
        """What is wrong with those of these disks that are there."""
        return []

    def _settle(self, received: Path, wanted: RootDisk) -> None:
        """Puts a received disk on this host's base image and grows it. May be repeated."""
        base = None if wanted.base is None else _existing(wanted.base)
        qemu_img.settle_foreign(received, base, wanted.size_gb * _GIB)

    def most_bytes(self, root: RootDisk) -> int:
        """The most bytes of a root disk that arrives from elsewhere."""
        return image_formats.most_bytes(root.size_gb, self.directory)

    def _write_info(self, uuid: str, wanted: RootDisk) -> None:
        path = self.folder(uuid) / "disk.info"
        durable.write(path, json.dumps({"base_image_id": wanted.base_image_id if wanted.base else None}))

    def _read_info(self, folder: Path) -> dict[str, Any]:
        try:
            return durable.read(folder / "disk.info", _object) or {}
        except durable.Torn:
            # The name of the file below the disk shows whether that is the server's image.
            return {}


def _object(content: bytes) -> dict[str, Any]:
    found = json.loads(content)
    if not isinstance(found, dict):
        raise ValueError("not a JSON object")
    return found


def _names_of(image_id: str) -> tuple[str, ...]:
    """What base files of an image are called: here, and by Nova (``nova.virt.imagecache.get_cache_fname``)."""
    return (image_id, sha1(image_id.encode(), usedforsecurity=False).hexdigest()) if image_id else ()


def _existing(base: BaseImage) -> BaseImage:
    if not base.path.exists():
        raise GuestFailed("An image that a root disk needs is not on this host.", details=str(base.path))
    return base
