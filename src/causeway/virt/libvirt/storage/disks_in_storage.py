"""Local disks of guests in storage that several hosts reach, of whatever kind: what moves, evacuations and audits do with them.

Whose a disk is says `causeway.virt.shared_disks.ownership`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from causeway import durable
from causeway.errors import GuestFailed
from causeway.model.shared_disk import SharedDisk, StoredDisk
from causeway.virt.driver import ExpectedDisk, LocalDisk
from causeway.virt.libvirt.storage import qemu_img
from causeway.virt.libvirt.storage.disks import InstanceDisks
from causeway.virt.shared_disks.ownership import SharedDisks

_MIB = 2**20


class DisksInStorage(InstanceDisks):
    """A kind of storage says how it fills, overwrites and enlarges disks, and makes root disks."""

    def __init__(self, directory: Path, timeout: float, shared: SharedDisks) -> None:
        super().__init__(directory, timeout)
        self._shared = shared

    def show(self, uuid: str, name: str) -> None:
        """Called when the guest has got a disk in the storage: a file that it was made of is deleted, or becomes a link."""
        path = self.folder(uuid) / name
        if path.exists():
            durable.delete(path)

    def hide(self, uuid: str, name: str) -> None:
        """Called before a file is made in the place of a disk: nothing is written through what `show` made."""

    def _fill(self, path: Path, stored_name: str) -> None:
        """Makes a disk in the storage of a qcow2 file of this host, with what the file stands on."""
        raise NotImplementedError

    def _overwrite(self, path: Path, stored_name: str) -> None:
        """Replaces the content of a disk, which is not smaller, by that of a qcow2 file of this host."""
        raise NotImplementedError

    def _grow(self, stored_name: str, size: int) -> None:
        """Makes a disk larger, to ``size`` bytes."""
        raise NotImplementedError

    def _when_unused(self, act: Callable[[], None]) -> None:
        """Does what is refused while somebody has a disk open, once that may have ended."""
        act()

    def _adopted(self, uuid: str, name: str, copy: Path | None, size: int) -> bool:  # noqa: ARG002
        """Makes a disk that has arrived in the storage round by round the guest's. False: the copy is a file."""
        return False

    # made

    def make_local(self, uuid: str, wanted: LocalDisk) -> None:
        size = wanted.size_mb * _MIB
        if wanted.shared is not None:
            # As it is: what is done to it depends on how large it was.
            self._take(uuid, wanted.name, wanted.shared, 0)
        if wanted.is_copy and self._adopted(uuid, wanted.name, wanted.snapshot, size):
            return
        held = self._shared.held(self.folder(uuid)).get(wanted.name)
        stored = self._shared.store.find(held.name) if held is not None else None
        if held is not None and stored is not None and wanted.snapshot is None:
            if wanted.is_swap and stored.size != size:
                # Its content is worth nothing. What a revert wants is in a snapshot.
                self._refill(uuid, held.name, wanted)
            elif stored.size < size:
                self._grow(held.name, size)
            return
        self.hide(uuid, wanted.name)
        super().make_local(uuid, replace(wanted, shared=None))
        self._put_in(uuid, wanted.name)

    def _put_in(self, uuid: str, name: str) -> None:
        """Makes a disk that is a file one in the storage."""
        path = self.folder(uuid) / name
        self._shared.make(self.folder(uuid), name, lambda disk: self._fill(path, disk))
        self.show(uuid, name)

    def _take(self, uuid: str, name: str, offered: SharedDisk, size: int) -> None:
        self._when_unused(lambda: self._shared.take(self.folder(uuid), name, offered))
        self.show(uuid, name)
        stored = self._shared.store.find(offered.name)
        # To look costs a tenth of what Ceph takes to find out that there is nothing to do, and the guest is off.
        if stored is not None and stored.size < size:
            self._grow(offered.name, size)

    def _refill(self, uuid: str, stored_name: str, wanted: LocalDisk) -> None:
        """Replaces the content of a disk by a new one."""
        name = f"{wanted.name}.new"
        super().make_local(uuid, replace(wanted, name=name, shared=None))
        path = self.folder(uuid) / name
        self._grow(stored_name, qemu_img.virtual_size(path))
        self._overwrite(path, stored_name)
        durable.delete(path)

    # of a move

    def stash(self, uuid: str) -> None:
        if not self.stashed_folder(uuid).exists():
            self._shared.put_aside(self.folder(uuid))
        super().stash(uuid)

    def restore(self, uuid: str) -> None:
        if self.stashed_folder(uuid).exists():
            if self._shared.held(self.folder(uuid)):
                raise GuestFailed(f"The disks of server {uuid} can't be put back: others are in their place.")
            self._shared.put_back(self.stashed_folder(uuid))
        super().restore(uuid)

    def delete_stashed(self, uuid: str) -> None:
        self._shared.release_stashed(self.stashed_folder(uuid))
        super().delete_stashed(uuid)

    def delete(self, uuid: str) -> None:
        self._shared.release(self.folder(uuid))
        super().delete(uuid)

    # in storage that several hosts reach

    def storage(self) -> str | None:
        return self._shared.store.id

    def in_storage(self, uuid: str, *, stashed: bool = False) -> set[str]:
        return set(self._shared.held(self.stashed_folder(uuid) if stashed else self.folder(uuid)))

    def offered(self, uuid: str) -> dict[str, SharedDisk]:
        return self._shared.offered(self.folder(uuid))

    def size_in_storage(self, uuid: str, name: str) -> int:
        held = self._shared.held(self.folder(uuid)).get(name)
        stored = self._shared.store.find(held.name) if held is not None else None
        return super().size_in_storage(uuid, name) if stored is None else stored.size

    def reaches(self, offered: dict[str, SharedDisk]) -> bool:
        return self._shared.reaches(*offered.values())

    def list_storage(self) -> list[StoredDisk]:
        return self._shared.listed()

    def remove_from_storage(self, name: str) -> None:
        self._shared.remove(name)

    def await_guest(self, uuid: str, offered: dict[str, SharedDisk]) -> None:
        for name, each in offered.items():
            self._shared.await_guest(self.folder(uuid), name, each)
            self.show(uuid, name)

    def settle(self, uuid: str) -> None:
        self._shared.settle(self.folder(uuid))

    def take_over(self, uuid: str, names: list[str], dead_host: str) -> list[str]:
        self.make_folder(uuid)
        taken = [name for name in names if self._shared.take_over(self.folder(uuid), name, dead_host)]
        for name in taken:
            self.show(uuid, name)
        return taken

    def faults_in_storage(self, uuid: str, disks: list[ExpectedDisk], *, stashed: bool) -> list[str]:
        folder = self.stashed_folder(uuid) if stashed else self.folder(uuid)
        return self._shared.faults(folder, {each.name: each.size_mb * _MIB for each in disks}, stashed=stashed)
