"""The local disks of guests in a pool of Ceph (``[libvirt] images_type = rbd``).

::

    POOL/UUID_disk                 root disk, raw, a clone of its base image; UUID_disk.eph0, UUID_disk.swap: the others
    POOL/UUID_disk.arriving.MOVE   a disk that comes round by round, and is no guest's yet (`shared_disks.arriving`)
    POOL/base_ID                   base images (`rbd.images`), unless the image service has them in the same cluster
    INSTANCES/UUID/shared.json     which of the guest's disks are in the pool, and since when they are this host's

Whose a disk is says `causeway.virt.shared_disks.ownership`. A guest whose disks are files, since it was made before the host had
the pool, keeps them; so does a rescued guest its rescue disk.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from uuid import uuid4

from causeway import durable
from causeway.errors import DiskInUse, GuestFailed
from causeway.model.image import QCOW2, RAW
from causeway.virt.driver import ROOT_DISK, DiskCopy, DiskExport, RootDisk, StoredImage
from causeway.virt.libvirt.guest_xml.rbd_source import CephAccess, RbdSource
from causeway.virt.libvirt.storage.disk_readers import Writer
from causeway.virt.libvirt.storage.disks_in_storage import DisksInStorage
from causeway.virt.libvirt.storage.rbd.images import RbdImages
from causeway.virt.libvirt.storage.rbd.store import BASE_SNAPSHOT, RbdStore
from causeway.virt.shared_disks import arriving
from causeway.virt.shared_disks.ownership import SharedDisks
from causeway.virt.warm import DiskWriter

_GIB, _MIB = 2**30, 2**20
# A snapshot of a disk that is being copied, which its host did not delete.
_COPIED = "copied-"
# A client that was killed is seen for so many seconds.
_WATCHED_SECONDS, _LOOK_EVERY = 35.0, 0.5


class RbdDisks(DisksInStorage):
    """Of ``host``. ``access``: how guests reach the pool now."""

    copies_itself = True

    def __init__(
        self, directory: Path, timeout: float, store: RbdStore, host: str, access: Callable[[], CephAccess]
    ) -> None:
        super().__init__(directory, timeout, SharedDisks(store, host))
        self.store = store
        self.images = RbdImages(store, timeout)
        self._access = access

    def source(self, uuid: str, name: str) -> Path | RbdSource:
        held = self._shared.held(self.folder(uuid)).get(name)
        if held is None:
            return super().source(uuid, name)
        return RbdSource(f"{self.store.client.access.pool}/{held.name}", self._access())

    def disk_format(self, uuid: str, name: str) -> str:
        return RAW if name in self.in_storage(uuid) else super().disk_format(uuid, name)

    def has(self, uuid: str, name: str) -> bool:
        held = self._shared.held(self.folder(uuid)).get(name)
        return super().has(uuid, name) if held is None else self.store.find(held.name) is not None

    def room(self, *, over_commit: bool) -> int:
        used, total = self.store.used_and_total()
        if over_commit:
            return total - used
        names = (name for name in self.store.names() if not name.endswith(".partial"))
        return total - sum(stored.size for name in names if (stored := self.store.find(name)) is not None)

    # made

    def create_root(self, uuid: str, wanted: RootDisk) -> None:
        folder, size = self.folder(uuid), wanted.size_gb * _GIB
        self.make_folder(uuid)
        if wanted.shared is not None:
            self._take(uuid, ROOT_DISK, wanted.shared, size)
        elif wanted.is_copy and self._adopted(uuid, ROOT_DISK, wanted.snapshot, size):
            return
        elif wanted.snapshot is not None or super().has(uuid, ROOT_DISK) or (wanted.base and wanted.stands_alone):
            # As a file first, which came from elsewhere and is checked, and put on its base image or off it.
            super().create_root(uuid, wanted)
            self._put_in(uuid, ROOT_DISK)
        elif wanted.stored_image is not None:
            image = wanted.stored_image

            def clone_stored(disk: str) -> None:
                self.images.clone(image, disk)
                self.store.grow(disk, max(size, image.virtual_size))
                if wanted.stands_alone:
                    self.store.flatten(disk)

            self._shared.make(folder, ROOT_DISK, clone_stored)
        elif wanted.base is not None and wanted.base_image_id is not None:
            base = wanted.base
            name = self.images.import_base(wanted.base_image_id, base.path, base.disk_format)

            def clone(disk: str) -> None:
                self.store.clone(name, BASE_SNAPSHOT, disk)
                self.store.grow(disk, max(size, base.virtual_size))

            self._shared.make(folder, ROOT_DISK, clone)
        elif ROOT_DISK not in self.in_storage(uuid):
            raise GuestFailed(f"Server {uuid} has neither an image nor a snapshot to make its root disk from.")

    def create_empty(self, uuid: str, name: str, size: int, root: RootDisk | None) -> None:  # noqa: ARG002
        # The source's hypervisor copies all of the disk (``blank_disks``).
        self._shared.remake(self.folder(uuid), name, lambda disk: self.store.create(disk, size))

    def check_usable(self, uuid: str) -> None:
        super().check_usable(uuid)
        self._when_unused(lambda: self._shared.require_owned(self.folder(uuid)))

    def _adopted(self, uuid: str, name: str, copy: Path | None, size: int) -> bool:
        # A file: of a host without a pool.
        arrived = arriving.named_in(copy) if copy is not None else None
        if copy is None or arrived is None:
            return False
        # First: once it has its name, nobody looks at the copy again.
        stored = self.store.find(arrived)
        if stored is not None and stored.size < size:
            self.store.grow(arrived, size)
        self._shared.adopt(self.folder(uuid), name, arrived)
        durable.delete(copy)
        return True

    def _fill(self, path: Path, stored_name: str) -> None:
        self.images.fill(path, stored_name)

    def _overwrite(self, path: Path, stored_name: str) -> None:
        self.images.overwrite(path, stored_name)

    def _grow(self, stored_name: str, size: int) -> None:
        self.store.grow(stored_name, size)

    def _when_unused(self, act: Callable[[], None]) -> None:
        # A client that was killed is seen for half a minute.
        end = time.monotonic() + _WATCHED_SECONDS
        while True:
            try:
                act()
            except DiskInUse:
                if time.monotonic() >= end:
                    raise
                if self.store.client.stopping.wait(_LOOK_EVERY):
                    raise
            else:
                return

    # copied

    @contextmanager
    def open_copy(self, copy: DiskCopy) -> Iterator[DiskWriter]:
        name = arriving.begin(self.store, copy)
        # Of a process that was killed: what it writes late would be in place of what is written now.
        self._when_unused(lambda: self._require_unused(name))
        stored = self.store.find(name)
        if stored is None and copy.base is not None and copy.base_image_id is not None:
            base = self.images.import_base(copy.base_image_id, copy.base.path, copy.base.disk_format)
            self.store.clone(base, BASE_SNAPSHOT, name)
        elif stored is None:
            self.store.create(name, copy.size)
        if stored is None or stored.size < copy.size:
            self.store.grow(name, copy.size)
        with self.images.opened(name, writable=True) as client:
            yield Writer(client)

    def _require_unused(self, name: str) -> None:
        stored = self.store.find(name)
        if stored is not None and stored.users:
            raise DiskInUse(f"Somebody else writes to disk {name}.", details=", ".join(stored.users))

    def has_copy(self, path: Path) -> bool:
        return arriving.exists(self.store, path)

    def discard_copy(self, path: Path) -> None:
        arriving.discard(self.store, path)

    @contextmanager
    def export(self, uuid: str, name: str, *, image_ref: str, flatten: bool) -> Iterator[DiskExport]:
        for folder in (self.folder(uuid), self.stashed_folder(uuid)):
            held = self._shared.held(folder).get(name)
            if held is not None:
                with self._exported(uuid, name, held.name, None) as exported:
                    yield exported
                return
        with super().export(uuid, name, image_ref=image_ref, flatten=flatten) as exported:
            yield exported

    def export_from_storage(
        self, uuid: str, name: str, still: AbstractContextManager[None]
    ) -> AbstractContextManager[DiskExport]:
        held = self._shared.held(self.folder(uuid)).get(name)
        if held is None:
            return super().export_from_storage(uuid, name, still)
        return self._exported(uuid, name, held.name, self._snapshot(held.name, still))

    def _snapshot(self, stored_name: str, still: AbstractContextManager[None]) -> str:
        """Makes a snapshot of a disk for a copy."""
        stored = self.store.find(stored_name)
        for label in stored.snapshots if stored is not None else ():
            if label.startswith(_COPIED):
                self.store.delete_snapshot(stored_name, label)
        snapshot = f"{_COPIED}{uuid4().hex}"
        with still:
            self.store.make_snapshot(stored_name, snapshot)
        return snapshot

    def store_image(
        self, uuid: str, name: str, image_id: str, beside: str, still: AbstractContextManager[None]
    ) -> StoredImage | None:
        held = self._shared.held(self.folder(uuid)).get(name)
        if held is None or not self.images.is_in_cluster(beside):
            return None
        snapshot = self._snapshot(held.name, still)
        try:
            return self.images.store(held.name, snapshot, image_id, beside)
        finally:
            self.store.delete_snapshot(held.name, snapshot)

    def delete_stored_image(self, image_id: str, beside: str) -> None:
        self.images.delete_stored(image_id, beside)

    @contextmanager
    def _exported(self, uuid: str, name: str, stored_name: str, snapshot: str | None) -> Iterator[DiskExport]:
        with self.new_export(uuid, name) as path:
            try:
                self.images.export_disk(stored_name, snapshot, path)
            finally:
                if snapshot is not None:
                    self.store.delete_snapshot(stored_name, snapshot)
            yield DiskExport(name, path, QCOW2, path.stat().st_size)

    def base_image_of(self, uuid: str, image_ref: str) -> str | None:
        return None if ROOT_DISK in self.in_storage(uuid) else super().base_image_of(uuid, image_ref)

    def stored_image(self, location: str) -> StoredImage | None:
        return self.images.at(location)
