"""Disks of simulated guests in a folder that several hosts share, as a Ceph pool is shared.

In the folder of a guest, ``disk`` is then a link to its file in the store. The hosts that run a guest have its disks open. A host
that was fenced keeps running its guest, as a real one does, but what the guest writes is lost to it: an error.

If there is a folder ``images`` in the store, or a link to one, it is where the image service keeps images, and root disks are
made from these.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit
from uuid import UUID

from causeway import durable
from causeway.errors import GuestFailed
from causeway.model.image import RAW
from causeway.model.shared_disk import ROUND, SharedDisk
from causeway.virt import image_formats
from causeway.virt.driver import BaseImage, DiskCopy, LocalDisk, RootDisk, StoredImage
from causeway.virt.shared_disks import arriving
from causeway.virt.shared_disks.folder_store import FolderStore
from causeway.virt.shared_disks.ownership import SharedDisks, name_of
from causeway.virt.simulated import disk
from causeway.virt.simulated.host_files import running_in

Made = TypeVar("Made", RootDisk, LocalDisk)


def open_store(folder: Path, hostname: str, hosts_dir: Path) -> FolderStore:
    """Returns the store in ``folder`` as the host sees it. ``hosts_dir``: the directory of all hosts' state directories."""

    def users_of(name: str) -> list[str]:
        uuid, file = name[:36], folder / "disks" / name
        return [
            f"{host}/{uuid}"
            for host in running_in(hosts_dir, uuid)
            if host != hostname
            and not disk.is_fenced(folder, host, uuid)
            and any(path.resolve() == file.resolve() for path in (hosts_dir / host / "instances" / uuid).glob("disk*"))
        ]

    def fence(users: list[str]) -> None:
        for user in users:
            host, _, uuid = user.partition("/")
            durable.make_folder(folder / disk.FENCED)
            durable.write(folder / disk.FENCED / f"{uuid}@{host}", "")

    return FolderStore(folder, _size_of, users_of, fence)


def _size_of(path: Path) -> int:
    """Of a disk that is damaged, nothing: who uses it finds that out."""
    found = disk.decode(path.read_bytes())
    return 0 if found is None else found.header.size


class DiskMaker:
    """Makes local disks where the host keeps them: in ``shared``, or without it in the guest's own folder."""

    def __init__(self, shared: SharedDisks | None, store: FolderStore | None) -> None:
        self._shared = shared
        self._store = store

    def is_cut_off(self, host: str, uuid: str) -> bool:
        """Whether the guest of another host can't write to its disks any more."""
        return self._store is not None and disk.is_fenced(self._store.folder, host, uuid)

    def is_another_client(self, host: str, uuid: str) -> None:
        """Called before a guest runs: what was fenced was the process of its last run."""
        if self._store is not None:
            durable.delete(self._store.folder / disk.FENCED / f"{uuid}@{host}")

    def root(self, path: Path, wanted: RootDisk) -> None:
        """Makes a root disk as `RootDisk` says."""
        if wanted.stored_image is not None:
            image = wanted.stored_image
            kept = self._kept_image(image.location)
            if kept is None:
                raise GuestFailed("An image is not in the storage of the host.", details=image.location)
            wanted = replace(wanted, base=BaseImage(kept, RAW, image.virtual_size))
        if wanted.is_copy and self._adopted(path, wanted, disk.create):
            return
        if wanted.shared is None:
            self._make(path, lambda file: disk.create(file, wanted))
            return
        self._take(path, wanted)
        found = disk.load(path)
        if found.header.size_gb < wanted.size_gb:
            found.header.size_gb = wanted.size_gb
            disk.save(path, found)

    def stored_image(self, location: str) -> StoredImage | None:
        path = self._kept_image(location)
        if path is None:
            return None
        with path.open("rb") as file:
            if not image_formats.begins_raw(file.read(1 << 16)):
                return None
        return StoredImage(location, path.stat().st_size)

    def beside(self, location: str, image_id: str) -> Path | None:
        """The file for another image, where the image at the location is."""
        found = self._kept_image(location)
        return None if found is None else found.with_name(str(UUID(image_id)))

    def _kept_image(self, location: str) -> Path | None:
        """The file of an image of the image service, if it is in the store."""
        url = urlsplit(location)
        if self._store is None or url.scheme != "file" or not (self._store.folder / "images").is_dir():
            return None
        path = Path(url.path)
        is_here = path.parent.resolve() == (self._store.folder / "images").resolve()
        return path if is_here and path.is_file() else None

    def empty_root(self, path: Path, wanted: RootDisk) -> None:
        """Makes an empty root disk for a guest that will arrive."""
        self._make(path, lambda file: disk.create_empty(file, wanted))

    def local(self, path: Path, wanted: LocalDisk) -> None:
        """Makes an ephemeral disk or swap, or changes the one that exists, as `LocalDisk` says."""
        if wanted.shared is not None:
            self._take(path, wanted)
        if wanted.is_copy and self._adopted(path, wanted, disk.create_local):
            return
        if path.exists():
            disk.create_local(path.resolve(), wanted)
        else:
            self._make(path, lambda file: disk.create_local(file, wanted))

    def take_over(self, path: Path, dead_host: str) -> bool:
        """Makes a disk of a dead host the guest's. Returns False if there is none that this host reaches."""
        if self._shared is None or self._store is None or not self._shared.take_over(path.parent, path.name, dead_host):
            return False
        link(path, self._store.path(name_of(path.parent, path.name)))
        return True

    def await_guest(self, path: Path, offered: SharedDisk) -> None:
        """Makes the disk of a guest that is arriving live reachable. It stays its source's."""
        if self._shared is None or self._store is None:
            raise GuestFailed("This host has no storage that it shares with others.", details=str(offered))
        self._shared.await_guest(path.parent, path.name, offered)
        link(path, self._store.path(offered.name))

    def _make(self, path: Path, create: Callable[[Path], None]) -> None:
        if self._shared is None or self._store is None:
            create(path)
            return
        store = self._store
        if path.is_symlink():
            # A disk that is made anew where there was one.
            create(path.resolve())
            return
        name = self._shared.make(path.parent, path.name, lambda name: create(store.path(name)))
        link(path, store.path(name))

    def copied_to(self, copy: DiskCopy) -> Path:
        """The file of a disk that arrives round by round."""
        return copy.path if self._store is None else self._store.path(arriving.begin(self._store, copy))

    def has_copy(self, path: Path) -> bool:
        return path.exists() if self._store is None else arriving.exists(self._store, path)

    def discard_copy(self, path: Path) -> None:
        if self._store is not None:
            arriving.discard(self._store, path)

    def _adopted(self, path: Path, wanted: Made, create: Callable[[Path, Made], None]) -> bool:
        """Makes the guest's disk of one that has arrived in the store. False: it is a file."""
        name = arriving.named_in(wanted.snapshot) if wanted.snapshot is not None else None
        if self._shared is None or self._store is None or wanted.snapshot is None or name is None:
            return False
        store, arrived = self._store, self._store.path(name)

        def made(disk_name: str) -> None:
            # The copy stays until the disk is the guest's.
            taken = store.path(disk_name).with_name(f".{disk_name}")
            shutil.copy(arrived, taken)
            create(store.path(disk_name), replace(wanted, snapshot=taken))

        link(path, store.path(self._shared.make(path.parent, path.name, made)))
        arriving.discard(store, wanted.snapshot)
        return True

    def _take(self, path: Path, wanted: RootDisk | LocalDisk) -> None:
        if wanted.shared is None or self._shared is None or self._store is None:
            raise GuestFailed("This host has no storage that it shares with others.", details=str(wanted.shared))
        self._shared.take(path.parent, path.name, wanted.shared)
        link(path, self._store.path(wanted.shared.name))


class RoundSnapshots:
    """Keeps disks in the store as rounds read them, as snapshots in Ceph do: somebody has to delete them."""

    def __init__(self, shared: SharedDisks) -> None:
        self._shared = shared
        self._prefix = f"{ROUND}{shared.host}-"

    def keep(self, folder: Path, number: int, since: int | None) -> None:
        for held in self._shared.held(folder).values():
            self._shared.store.make_snapshot(held.name, f"{self._prefix}{number}")
        self._delete(folder, {number, since})

    def discard(self, *folders: Path) -> None:
        for folder in folders:
            self._delete(folder, set())

    def _delete(self, folder: Path, kept: set[int | None]) -> None:
        for held in self._shared.held(folder).values():
            stored = self._shared.store.find(held.name)
            for label in stored.snapshots if stored is not None else ():
                if label.startswith(self._prefix) and label not in {f"{self._prefix}{number}" for number in kept}:
                    self._shared.store.delete_snapshot(held.name, label)


def link(path: Path, target: Path) -> None:
    """Makes ``path`` a name of the file in the store."""
    if not path.is_symlink():
        path.symlink_to(target)
        durable.sync(path.parent)
