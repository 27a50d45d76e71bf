"""A folder as shared storage does what every store does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from causeway.virt.shared_disks.folder_store import FolderStore
from tests.shared_stores import SharedStoreContract


class FolderSite:
    """A folder. Its guests are those of the test."""

    def __init__(self, folder: Path) -> None:
        self.guests: list[FolderGuest] = []
        self.store = FolderStore(folder, lambda path: path.stat().st_size, self.users, self.fence)
        self.store.start()

    def users(self, name: str) -> list[str]:
        return [guest.name for guest in self.guests if guest.disk == name and not guest.fenced]

    def fence(self, users: list[str]) -> None:
        for guest in self.guests:
            guest.fenced |= guest.name in users

    def make(self, name: str, content: bytes) -> None:
        self.store.path(name).write_bytes(content)

    def write(self, name: str, content: bytes) -> None:
        self.store.path(name).write_bytes(content)

    def content(self, name: str) -> bytes:
        return self.store.path(name).read_bytes()

    @contextmanager
    def guest(self, name: str) -> Iterator[FolderGuest]:
        guest = FolderGuest(self, name, f"guest-{len(self.guests)}")
        self.guests.append(guest)
        yield guest
        guest.kill()


@dataclass(eq=False)
class FolderGuest:
    site: FolderSite
    disk: str
    name: str
    fenced: bool = field(default=False)

    def write(self, content: bytes) -> bool:
        if not self.fenced:
            self.site.write(self.disk, content)
        return not self.fenced

    def kill(self) -> None:
        self.site.guests.remove(self)


@pytest.fixture
def site(tmp_path: Path) -> FolderSite:
    return FolderSite(tmp_path / "store")


class TestFolderStore(SharedStoreContract):
    """Every statement there holds."""
