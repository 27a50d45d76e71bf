"""A store of qcow2 disks in a folder that several hosts mount: NFS, or any file system with locks that all of them see.

::

    FOLDER/id, FOLDER/disks/, FOLDER/owners/    as `causeway.virt.shared_disks.folder_store` says
    FOLDER/base/ID                              base images, on which disks stand
    FOLDER/deleted/NAME@LABEL                   snapshots that are to be deleted

Snapshots are qcow2's internal ones: they are made and rolled back without a copy, with the disk's size. Only who may write to a
disk can delete one, and its guest may run on another host: so it counts as deleted as soon as a note says so, and is deleted
when the disk's owner starts its guest (`purge`).

QEMU's lock on the file says whether a guest has the disk open. A folder can't fence: nobody is shut out, whoever asks is refused.
"""

from __future__ import annotations

import fcntl
import os
import struct
from pathlib import Path

from causeway import durable
from causeway.errors import DiskInUse, GuestFailed
from causeway.model.shared_disk import StoredDisk
from causeway.virt.driver import BaseImage
from causeway.virt.libvirt.storage import qemu_img
from causeway.virt.shared_disks.folder_store import FolderStore

# QEMU locks a byte for each permission that it has; this one is that to write. Source: QEMU, block/file-posix.c.
_WRITES = 101
# Linux' struct flock: type, whence, start, length, pid.
_FLOCK = "hhqqi4x"


class Qcow2Store(FolderStore):
    """``timeout``: seconds for what reads or writes a whole disk."""

    def __init__(self, folder: Path, timeout: float) -> None:
        super().__init__(folder, qemu_img.virtual_size, self._writers, self._refuse)
        self._timeout = timeout

    def start(self) -> None:
        super().start()
        for name in ("base", "deleted"):
            durable.make_folder(self.folder / name)

    @property
    def is_there(self) -> bool:
        """Whether a host has ever started with it."""
        return (self.folder / "id").exists()

    def close(self) -> None:
        """Nothing is open."""

    @property
    def id(self) -> str:
        # Disks name their base images by path, so a folder that is mounted elsewhere is another one.
        return f"{super().id}:{self.folder}"

    def find(self, name: str) -> StoredDisk | None:
        if not self.path(name).exists():
            return None
        header = qemu_img.info(self.path(name))
        labels = sorted(self._labels(name, header))
        owner = durable.read(self._owner(name), bytes.decode)
        return StoredDisk(name, int(header["virtual-size"]), owner, tuple(labels), tuple(self.users(name)))

    def make_snapshot(self, name: str, label: str) -> None:
        self._require(name)
        if label not in self._labels(name, qemu_img.info(self.path(name))):
            self._require_unused(name)
            self.purge(name)
            qemu_img.make_snapshot(self.path(name), label)

    def roll_back(self, name: str, label: str) -> None:
        self._require(name)
        header = qemu_img.info(self.path(name))
        if label not in self._labels(name, header):
            raise GuestFailed(f"Disk {name} has no snapshot {label}.")
        self._require_unused(name)
        for bitmap in header.get("format-specific", {}).get("data", {}).get("bitmaps", []):
            # Of rounds that a guest's former host began. QEMU rolls back nothing beside them.
            qemu_img.remove_bitmap(self.path(name), str(bitmap["name"]))
        qemu_img.roll_back(self.path(name), label)

    def delete_snapshot(self, name: str, label: str) -> None:
        if self.path(name).exists():
            durable.write(self._note(name, label), b"")

    def remove(self, name: str) -> None:
        super().remove(name)
        for note in self._notes(name):
            durable.delete(note)

    def purge(self, name: str) -> None:
        """Deletes the snapshots that are to be deleted. Called by the disk's owner, while nobody has it open."""
        kept = {each["name"] for each in qemu_img.info(self.path(name)).get("snapshots", [])}
        for note in self._notes(name):
            label = note.name.removeprefix(f"{name}@")
            if label in kept:
                qemu_img.delete_snapshot(self.path(name), label, self._timeout)
            durable.delete(note)

    def base(self, image_id: str, image: BaseImage) -> BaseImage:
        """The base image that disks of all hosts stand on. The first host that needs it copies it into the folder."""
        path = self.folder / "base" / image_id
        if not path.exists():
            partial = path.with_name(f".{image_id}.{os.uname().nodename}.{os.getpid()}")
            qemu_img.to_raw(image, partial, self._timeout)
            # Another host's, on which disks stand by now, stays.
            durable.settle_unless_there(partial, path)
        return BaseImage(path, "raw", image.virtual_size)

    def used_and_total(self) -> tuple[int, int]:
        """Bytes of the file system."""
        facts = os.statvfs(self.folder)
        return (facts.f_blocks - facts.f_bavail) * facts.f_frsize, facts.f_blocks * facts.f_frsize

    def _labels(self, name: str, header: dict[str, object]) -> set[str]:
        snapshots = header.get("snapshots", [])
        found = {str(each["name"]) for each in snapshots} if isinstance(snapshots, list) else set()
        return found - {note.name.removeprefix(f"{name}@") for note in self._notes(name)}

    def _writers(self, name: str) -> list[str]:
        """Somebody has the file open for writing; who that is the lock does not say."""
        try:
            with self.path(name).open("rb") as file:
                asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, _WRITES, 1, 0)
                found = struct.unpack(_FLOCK, fcntl.fcntl(file, fcntl.F_OFD_GETLK, asked))
        except FileNotFoundError:
            return []
        return [] if found[0] == fcntl.F_UNLCK else [f"a process that writes to {self.path(name)}"]

    def _require_unused(self, name: str) -> None:
        if users := self.users(name):
            raise DiskInUse(f"Disk {name} is in use: its content is neither kept nor rolled back.", details=users[0])

    def _refuse(self, users: list[str]) -> None:
        if users:
            raise DiskInUse(
                "A disk in a shared folder is in use: its guest may still run, and a folder can shut nobody out. Power its host"
                " off, then try again.",
                details=", ".join(users),
            )

    def _note(self, name: str, label: str) -> Path:
        return self.folder / "deleted" / f"{name}@{label}"

    def _notes(self, name: str) -> list[Path]:
        return sorted((self.folder / "deleted").glob(f"{name}@*"))
