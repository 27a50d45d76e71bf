"""Disks of guests in a pool, on a store that is a folder. On a real Ceph: `test_ceph_disks`."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, cast

import pytest

from causeway.errors import ImageRefused
from causeway.virt.driver import LocalDisk, RootDisk
from causeway.virt.libvirt.guest_xml.rbd_source import CephAccess
from causeway.virt.libvirt.storage import qemu_img
from causeway.virt.libvirt.storage.rbd.store import RbdStore
from causeway.virt.libvirt.storage.rbd_disks import RbdDisks
from causeway.virt.shared_disks.folder_store import FolderStore

UUID = "5f5b6a3e-8b0e-4a36-9c39-1f6d2f4a9d11"
MIB = 2**20


class Client:
    stopping = threading.Event()


class Pool(FolderStore):
    """As much of a pool as `RbdDisks` uses. ``calls``: what was asked for that changes a disk's size."""

    client = Client()

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, lambda path: path.stat().st_size, lambda _name: [], lambda _users: None)
        self.calls: list[tuple[str, int]] = []
        self.start()

    def create(self, name: str, size: int) -> None:
        self.path(name).write_bytes(b"\0" * size)

    def grow(self, name: str, size: int) -> None:
        self.calls.append((name, size))
        with self.path(name).open("r+b") as file:
            file.truncate(size)


class Images:
    """Files become disks of the pool, without Ceph."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def fill(self, path: Path, name: str) -> None:
        self._pool.path(name).write_bytes(qemu_raw(path))

    def overwrite(self, path: Path, name: str) -> None:
        content = qemu_raw(path)
        self._pool.path(name).write_bytes(content.ljust(self._pool.path(name).stat().st_size, b"\0"))


def qemu_raw(path: Path) -> bytes:
    raw = path.with_suffix(".as-raw")
    qemu_img._run(2**30, "convert", "-f", "qcow2", "-O", "raw", path, raw)
    content = raw.read_bytes()
    raw.unlink()
    return content


@pytest.fixture
def pool(tmp_path: Path) -> Pool:
    return Pool(tmp_path / "pool")


def disks_of(tmp_path: Path, pool: Pool, host: str) -> RbdDisks:
    made = RbdDisks(tmp_path / host, 60.0, cast(RbdStore, pool), host, lambda: CephAccess(()))
    made.images = cast(Any, Images(pool))
    return made


def swap(size_mb: int, **more: Any) -> LocalDisk:
    return LocalDisk("disk.swap", "/dev/vdb", size_mb, "swap", **more)


def moved(tmp_path: Path, pool: Pool, size_mb: int) -> RbdDisks:
    """The disks at the target of a move, whose source has put its swap of 16 MiB aside."""
    source, target = (disks_of(tmp_path, pool, host) for host in "ab")
    source.make_folder(UUID)
    source.make_local(UUID, swap(16))
    offered = source.offered(UUID)
    source.stash(UUID)
    pool.calls.clear()
    target.make_folder(UUID)
    target.make_local(UUID, swap(size_mb, shared=offered["disk.swap"]))
    return target


def formatted_size(pool: Pool) -> int:
    """MiB of swap, as its own header says."""
    content = pool.path(f"{UUID}_disk.swap").read_bytes()
    assert content[4086:4096] == b"SWAPSPACE2"
    # Its last page, counted from 0.
    return (int.from_bytes(content[1028:1032], "little") + 1) * 4096 // MIB


def test_swap_that_a_move_makes_larger_is_swap_of_the_new_size(tmp_path: Path, pool: Pool) -> None:
    moved(tmp_path, pool, 32)
    assert pool.path(f"{UUID}_disk.swap").stat().st_size == 32 * MIB
    assert formatted_size(pool) == 32


def test_what_has_its_size_is_not_asked_to_grow(tmp_path: Path, pool: Pool) -> None:
    target = moved(tmp_path, pool, 16)
    assert pool.calls == []
    assert formatted_size(pool) == 16
    assert target.in_storage(UUID) == {"disk.swap"}


def test_a_host_without_an_image_makes_no_root_disk(tmp_path: Path, pool: Pool) -> None:
    disks = disks_of(tmp_path, pool, "a")
    with pytest.raises(Exception, match="neither an image nor a snapshot"):
        disks.create_root(UUID, RootDisk(None, None))
    assert pool.names() == []


@pytest.mark.parametrize("disk_format", ["qcow2", "raw", "changes"])
def test_a_file_from_elsewhere_is_not_taken_for_a_note_of_a_copy(tmp_path: Path, pool: Pool, disk_format: str) -> None:
    """It would name a disk of another server."""
    disks = disks_of(tmp_path, pool, "a")
    stored = f"{UUID}_disk.arriving.0e1a2b3c"
    pool.path(stored).write_bytes(b"of another move")
    received = tmp_path / "received"
    received.write_text(f'{{"name": "{stored}"}}')
    with pytest.raises(ImageRefused):
        disks.create_root(UUID, RootDisk(None, None, received, disk_format))
    assert pool.names() == [stored]
    disks.create_root(UUID, RootDisk(None, None, received, disk_format, is_copy=True))
    assert pool.names() == [f"{UUID}_disk"]
