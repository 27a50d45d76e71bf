"""What is asked of a store of disks that several hosts reach."""

from __future__ import annotations

from typing import Protocol

from causeway.model.shared_disk import StoredDisk


class SharedStore(Protocol):
    """A store. Every call may be repeated, ends within a limit of its own, and raises `StorageUnreachable` if it fails.

    Calls that name a disk raise `GuestFailed` if there is no such disk, unless they say otherwise.
    """

    @property
    def id(self) -> str:
        """The same for all hosts that reach the store, and for no other store: ``rbd:FSID/POOL``, ``folder:UUID``."""
        ...

    def find(self, name: str) -> StoredDisk | None:
        """Describes a disk; None: there is none."""
        ...

    def names(self) -> list[str]:
        """The names of all disks."""
        ...

    def set_owner(self, name: str, owner: str) -> None:
        """Writes whose disk it is, to the disk itself."""
        ...

    def make_snapshot(self, name: str, label: str) -> None:
        """Keeps the disk's present content and size. There is one with the label already: nothing happens."""
        ...

    def roll_back(self, name: str, label: str) -> None:
        """Gives the disk the content and the size that it had. The snapshot stays."""
        ...

    def delete_snapshot(self, name: str, label: str) -> None:
        """Deletes a snapshot. No such snapshot, or no such disk: nothing happens."""
        ...

    def rename(self, name: str, to: str) -> None:
        """Renames a disk with its owner. Renamed already: nothing happens."""
        ...

    def remove(self, name: str) -> None:
        """Deletes a disk with the snapshots that it has. Gone already: nothing happens.

        Raises `GuestFailed` if somebody has it open, and does not close it soon.
        """
        ...

    def users(self, name: str) -> list[str]:
        """Who has the disk open for writing now."""
        ...

    def fence(self, users: list[str]) -> None:
        """Sees to it that these can't write into the store any more. Returns when that is so."""
        ...
