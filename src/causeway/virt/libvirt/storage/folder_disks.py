"""The local disks of guests in a folder that several hosts mount (``[libvirt] shared_disks_path``).

::

    FOLDER/disks/UUID_disk         root disk, qcow2, on FOLDER/base/ID; UUID_disk.eph0, UUID_disk.swap: the others
    INSTANCES/UUID/disk            a link to it, by which the guest and all that reads disks find it
    INSTANCES/UUID/shared.json     which of the guest's disks are in the folder, and since when they are this host's

Whose a disk is says `causeway.virt.shared_disks.ownership`, and never the link: it may point to a disk of another host by now.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from causeway import durable
from causeway.errors import Misconfigured
from causeway.virt.driver import ROOT_DISK, RootDisk
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
        elif ROOT_DISK in self.in_storage(uuid) and self.has(uuid, ROOT_DISK) and not _is_new(wanted.snapshot):
            return
        elif wanted.snapshot is None and wanted.base is not None and wanted.base_image_id and not wanted.stands_alone:
            base = self._store.base(wanted.base_image_id, wanted.base)
            size = max(size, base.virtual_size)
            self._make(uuid, ROOT_DISK, lambda disk: qemu_img.create(disk, size, base))
        else:
            # As a file first, which came from elsewhere and is checked, and put on its base image.
            self.hide(uuid, ROOT_DISK)
            super().create_root(uuid, wanted)
            self._put_in(uuid, ROOT_DISK)

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

    def _fill(self, path: Path, stored_name: str) -> None:
        # It stands alone.
        qemu_img.copy(path, self._store.path(stored_name), None, self.timeout)

    def _overwrite(self, path: Path, stored_name: str) -> None:
        qemu_img.overwrite(path, self._store.path(stored_name), self.timeout)

    def _grow(self, stored_name: str, size: int) -> None:
        qemu_img.grow(self._store.path(stored_name), size)

    def show(self, uuid: str, name: str) -> None:
        # A link in the guest's folder.
        held = self._shared.held(self.folder(uuid))[name]
        path, target = self.folder(uuid) / name, self._store.path(held.name)
        if path.is_symlink() and path.readlink() == target:
            return
        made = path.with_name(f".{name}.link")
        made.unlink(missing_ok=True)
        made.symlink_to(target)
        durable.rename(made, path)

    def hide(self, uuid: str, name: str) -> None:
        path = self.folder(uuid) / name
        if path.is_symlink():
            path.unlink()
            durable.sync(path.parent)


def _is_new(snapshot: Path | None) -> bool:
    """Whether a disk has come: what was put into the storage before is not there any more."""
    return snapshot is not None and snapshot.exists()
