"""The local disks of guests in a folder that several hosts mount (``[libvirt] shared_disks_path``).

::

    FOLDER/disks/UUID_disk         root disk, qcow2, on FOLDER/base/ID; UUID_disk.eph0, UUID_disk.swap: the others
    INSTANCES/UUID/disk            a link to it, by which the guest and all that reads disks find it
    INSTANCES/UUID/shared.json     which of the guest's disks are in the folder, and since when they are this host's

Whose a disk is says `causeway.virt.shared_disks.ownership`, and never the link: it may point to a disk of another host by now.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from causeway import durable
from causeway.errors import Misconfigured
from causeway.model.shared_disk import SharedDisk
from causeway.virt.driver import ROOT_DISK, LocalDisk, RootDisk
from causeway.virt.libvirt.storage import qemu_img
from causeway.virt.libvirt.storage.disks_in_storage import DisksInStorage
from causeway.virt.libvirt.storage.qcow2_store import Qcow2Store
from causeway.virt.shared_disks.ownership import RECORD, SharedDisks

_GIB, _MIB = 2**30, 2**20


class FolderDisks(DisksInStorage):
    """Of ``host``."""

    def __init__(self, directory: Path, timeout: float, store: Qcow2Store, host: str) -> None:
        super().__init__(directory, timeout, SharedDisks(store, host))
        self._store = store

    def start(self) -> None:
        """Raises Misconfigured if the folder is not the one in which guests of this host have disks: it is not mounted."""
        if not self._store.is_there and any(self.directory.glob(f"*/{RECORD}")):
            raise Misconfigured(
                f"[libvirt] shared_disks_path: {self._store.folder} has no disks, but guests of this host have disks in it. Mount"
                " it, then start this host again."
            )
        self._store.start()

    def room(self, *, over_commit: bool) -> int:
        used, total = self._store.used_and_total()
        if over_commit:
            return total - used
        return total - sum(stored.size for stored in self._shared.listed())

    def most_bytes(self, root: RootDisk) -> int:
        return root.size_gb * _GIB or self._store.used_and_total()[1]

    # made

    def create_root(self, uuid: str, wanted: RootDisk) -> None:
        self.make_folder(uuid)
        size = wanted.size_gb * _GIB
        if wanted.shared is not None:
            self._take(uuid, ROOT_DISK, wanted.shared, size)
        elif wanted.snapshot is None and ROOT_DISK in self.in_storage(uuid) and self.has(uuid, ROOT_DISK):
            return
        elif wanted.snapshot is None and wanted.base is not None and wanted.base_image_id and not wanted.stands_alone:
            base = self._store.base(wanted.base_image_id, wanted.base)
            size = max(size, base.virtual_size)
            self._make(uuid, ROOT_DISK, lambda disk: qemu_img.create(disk, size, base))
        else:
            # As a file first, which came from elsewhere and is checked, and put on its base image.
            self._delete_link(uuid, ROOT_DISK)
            super().create_root(uuid, wanted)
            self._put_in(uuid, ROOT_DISK)

    def make_local(self, uuid: str, wanted: LocalDisk) -> None:
        size = wanted.size_mb * _MIB
        if wanted.shared is not None:
            # As it is: what is done to it depends on how large it was.
            self._take(uuid, wanted.name, wanted.shared, 0)
        held = self._shared.held(self.folder(uuid)).get(wanted.name)
        stored = self._store.find(held.name) if held is not None else None
        if held is not None and stored is not None and wanted.snapshot is None:
            if wanted.is_swap and stored.size != size:
                # Its content is worth nothing. What a revert wants is in a snapshot.
                self._refill(uuid, held.name, wanted)
            qemu_img.grow(self._store.path(held.name), size)
            return
        self._delete_link(uuid, wanted.name)
        super().make_local(uuid, replace(wanted, shared=None))
        self._put_in(uuid, wanted.name)

    def create_empty(self, uuid: str, name: str, size: int, root: RootDisk | None) -> None:
        base = None
        if root is not None and root.base is not None and root.base_image_id:
            base = self._store.base(root.base_image_id, root.base)
        self._make(uuid, name, lambda disk: qemu_img.create(disk, size, base))

    def check_usable(self, uuid: str) -> None:
        self._shared.require_owned(self.folder(uuid))
        for name, held in self._shared.held(self.folder(uuid)).items():
            self._store.purge(held.name)
            self.show(uuid, name)
        super().check_usable(uuid)

    def base_image_id(self, uuid: str) -> str | None:
        return self._base_of(self.folder(uuid)) or super().base_image_id(uuid)

    def _read_info(self, folder: Path) -> dict[str, str]:
        base = self._base_of(folder)
        return super()._read_info(folder) if base is None else {"base_image_id": base}

    def _base_of(self, folder: Path) -> str | None:
        """The image that the root disk stands on: its base in the store has the image's id as its name."""
        if ROOT_DISK not in self._shared.held(folder) or not (folder / ROOT_DISK).exists():
            return None
        below = qemu_img.layer_below(folder / ROOT_DISK)
        return below.path.name if below is not None else None

    def _make(self, uuid: str, name: str, create: Callable[[Path], None]) -> None:
        self._shared.make(self.folder(uuid), name, lambda disk: create(self._store.path(disk)))
        self.show(uuid, name)

    def _put_in(self, uuid: str, name: str) -> None:
        """Makes a disk that is a file one in the store, where it stands alone."""
        path = self.folder(uuid) / name
        if path.is_symlink():
            return
        self._make(uuid, name, lambda disk: qemu_img.copy(path, disk, None, self.timeout))

    def _take(self, uuid: str, name: str, offered: SharedDisk, size: int) -> None:
        self._shared.take(self.folder(uuid), name, offered)
        self.show(uuid, name)
        qemu_img.grow(self._store.path(offered.name), size)

    def _refill(self, uuid: str, stored_name: str, wanted: LocalDisk) -> None:
        """Replaces the content of a disk by a new one."""
        name = f"{wanted.name}.new"
        super().make_local(uuid, replace(wanted, name=name, shared=None))
        path = self.folder(uuid) / name
        qemu_img.grow(self._store.path(stored_name), qemu_img.virtual_size(path))
        qemu_img.overwrite(path, self._store.path(stored_name), self.timeout)
        durable.delete(path)

    def show(self, uuid: str, name: str) -> None:
        """Makes a link in the guest's folder. A file of the guest that is there has been put into the store."""
        held = self._shared.held(self.folder(uuid))[name]
        path, target = self.folder(uuid) / name, self._store.path(held.name)
        if path.is_symlink() and path.readlink() == target:
            return
        made = path.with_name(f".{name}.link")
        made.unlink(missing_ok=True)
        made.symlink_to(target)
        durable.rename(made, path)

    def _delete_link(self, uuid: str, name: str) -> None:
        """Deletes a link, so that nothing is written through it."""
        path = self.folder(uuid) / name
        if path.is_symlink():
            path.unlink()
            durable.sync(path.parent)
