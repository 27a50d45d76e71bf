"""Local disks of guests in storage that several hosts reach, of whatever kind: what moves, evacuations and audits do with them.

Whose a disk is says `causeway.virt.shared_disks.ownership`.
"""

from __future__ import annotations

from pathlib import Path

from causeway.errors import GuestFailed
from causeway.model.shared_disk import SharedDisk, StoredDisk
from causeway.virt.driver import ExpectedDisk
from causeway.virt.libvirt.storage.disks import InstanceDisks
from causeway.virt.shared_disks.ownership import SharedDisks

_MIB = 2**20


class DisksInStorage(InstanceDisks):
    def __init__(self, directory: Path, timeout: float, shared: SharedDisks) -> None:
        super().__init__(directory, timeout)
        self._shared = shared

    def show(self, uuid: str, name: str) -> None:
        """Called when the guest has got a disk in the storage: if it finds its disks by its folder, that leads to it now."""

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
