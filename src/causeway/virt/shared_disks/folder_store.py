"""A store that is a folder: a file for each disk, and beside it who owns it. Simulated hosts keep shared disks so.

::

    FOLDER/id                   what hosts recognise the folder by
    FOLDER/disks/NAME           a disk
    FOLDER/owners/NAME          whose it is
    FOLDER/snapshots/NAME@LABEL its content at some moment
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

from causeway import durable
from causeway.errors import GuestFailed
from causeway.model.shared_disk import StoredDisk


class FolderStore:
    """``size_of(path)``: the size of a disk as its guest sees it. ``users_of(name)``, ``fence``: see `SharedStore`."""

    def __init__(
        self,
        folder: Path,
        size_of: Callable[[Path], int],
        users_of: Callable[[str], list[str]],
        fence: Callable[[list[str]], None],
    ) -> None:
        self.folder = folder
        # Read once: what a host says of itself needs no storage that answers.
        self._id = ""
        self._size_of = size_of
        self._users_of = users_of
        self._fence = fence

    def start(self) -> None:
        """Makes the folder, unless another host has."""
        for name in ("disks", "owners", "snapshots"):
            durable.make_folder(self.folder / name)
        durable.create(self.folder / "id", str(uuid4()))
        self._id = (self.folder / "id").read_text()

    @property
    def id(self) -> str:
        return f"folder:{self._id or (self.folder / 'id').read_text()}"

    def path(self, name: str) -> Path:
        """The file of a disk."""
        return self.folder / "disks" / name

    def find(self, name: str) -> StoredDisk | None:
        path = self.path(name)
        if not path.exists():
            return None
        labels = sorted(each.name.removeprefix(f"{name}@") for each in self._snapshots(name))
        owner = durable.read(self._owner(name), bytes.decode)
        return StoredDisk(name, self._size_of(path), owner, tuple(labels), tuple(self.users(name)))

    def names(self) -> list[str]:
        return sorted(path.name for path in (self.folder / "disks").iterdir() if not path.name.startswith("."))

    def set_owner(self, name: str, owner: str) -> None:
        self._require(name)
        durable.write(self._owner(name), owner)

    def make_snapshot(self, name: str, label: str) -> None:
        self._require(name)
        snapshot = self._snapshot(name, label)
        if not snapshot.exists():
            durable.write(snapshot, self.path(name).read_bytes())

    def roll_back(self, name: str, label: str) -> None:
        self._require(name)
        snapshot = self._snapshot(name, label)
        if not snapshot.exists():
            raise GuestFailed(f"Disk {name} has no snapshot {label}.")
        durable.write(self.path(name), snapshot.read_bytes())

    def delete_snapshot(self, name: str, label: str) -> None:
        durable.delete(self._snapshot(name, label))

    def rename(self, name: str, to: str) -> None:
        # The owner first: a disk without one was never finished.
        if self._owner(name).exists():
            durable.write(self._owner(to), self._owner(name).read_bytes())
        if self.path(name).exists():
            durable.rename(self.path(name), self.path(to))
        durable.delete(self._owner(name))

    def remove(self, name: str) -> None:
        if users := self.users(name):
            raise GuestFailed(f"Disk {name} is in use: it is not deleted.", details=", ".join(users))
        for snapshot in self._snapshots(name):
            durable.delete(snapshot)
        durable.delete(self.path(name))
        durable.delete(self._owner(name))

    def users(self, name: str) -> list[str]:
        return self._users_of(name)

    def fence(self, users: list[str]) -> None:
        self._fence(users)

    def _require(self, name: str) -> None:
        if not self.path(name).exists():
            raise GuestFailed(f"Disk {name} is not in shared storage.", details=str(self.folder))

    def _owner(self, name: str) -> Path:
        return self.folder / "owners" / name

    def _snapshot(self, name: str, label: str) -> Path:
        return self.folder / "snapshots" / f"{name}@{label}"

    def _snapshots(self, name: str) -> list[Path]:
        return list((self.folder / "snapshots").glob(f"{name}@*"))
