"""A folder of qcow2 disks as shared storage does what every store does; qemu-io writes to the disks, as guests do."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from causeway.errors import DiskInUse
from causeway.virt.driver import BaseImage
from causeway.virt.libvirt.storage import qemu_img
from causeway.virt.libvirt.storage.qcow2_store import Qcow2Store
from causeway.virt.shared_disks.ownership import SharedDisks
from tests.shared_stores import AFTER, BEFORE, UUID, SharedStoreContract, StoreSite

pytestmark = pytest.mark.skipif(shutil.which("qemu-io") is None, reason="qemu-io is not installed")


def program(*words: object) -> str:
    return subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True, timeout=60).stdout


class Qcow2Site:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = Qcow2Store(folder / "store", 60.0)
        self.store.start()

    def make(self, name: str, content: bytes) -> None:
        qemu_img.create(self.store.path(name), len(content))
        self.write(name, content)

    def write(self, name: str, content: bytes) -> None:
        path, given = self.store.path(name), self.folder / "content"
        given.write_bytes(content)
        qemu_img.grow(path, len(content))
        program("qemu-io", "-f", "qcow2", "-c", f"write -s {given} 0 {len(content)}", path)

    def content(self, name: str) -> bytes:
        program("qemu-img", "convert", "-f", "qcow2", "-O", "raw", self.store.path(name), self.folder / "read")
        return (self.folder / "read").read_bytes()

    @contextmanager
    def guest(self, name: str) -> Iterator[Qcow2Guest]:
        guest = Qcow2Guest(self.store.path(name))
        try:
            yield guest
        finally:
            guest.kill()


class Qcow2Guest:
    """A process that has the disk open, as QEMU has."""

    def __init__(self, path: Path) -> None:
        words = ["qemu-io", "-f", "qcow2", str(path)]
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self._given = path.with_name(f".{path.name}.given")
        assert self.write(b"x" * 512)

    def write(self, content: bytes) -> bool:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._given.write_bytes(content)
        self._process.stdin.write(f"write -s {self._given} 0 {len(content)}\n")
        self._process.stdin.flush()
        said = self._process.stdout.readline()
        return "wrote" in said and "ops" in self._process.stdout.readline()

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate(timeout=30)


@pytest.fixture
def site(tmp_path: Path) -> Qcow2Site:
    return Qcow2Site(tmp_path)


class TestQcow2Store(SharedStoreContract):
    """All but that a guest runs while others change its disk: QEMU lets nobody."""

    def test_a_disk_that_a_guest_has_open_gets_an_owner_and_a_snapshot(self, site: StoreSite) -> None:
        """An owner, and no snapshot."""
        site.make("disk", BEFORE)
        site.store.make_snapshot("disk", "before")
        with site.guest("disk") as guest:
            site.store.set_owner("disk", "b 2")
            for act in (site.store.make_snapshot, site.store.roll_back):
                with pytest.raises(DiskInUse):
                    act("disk", "label" if act == site.store.make_snapshot else "before")
            assert guest.write(AFTER)
        found = site.store.find("disk")
        assert found is not None and (found.owner, found.snapshots) == ("b 2", ("before",))
        assert site.content("disk") == AFTER

    def test_whoever_is_fenced_can_t_write_any_more(self, site: StoreSite) -> None:
        """Nobody can be."""
        site.make("disk", BEFORE)
        with site.guest("disk") as guest:
            with pytest.raises(DiskInUse, match="Power its host off"):
                site.store.fence(site.store.users("disk"))
            assert guest.write(AFTER)
        site.store.fence(site.store.users("disk"))

    @pytest.mark.parametrize("end", ["settle", "fail"])
    def test_a_disk_of_a_dead_host_is_taken_over_and_its_guest_can_t_write(
        self, site: StoreSite, tmp_path: Path, end: str
    ) -> None:
        """Only once its guest is gone."""
        a, b = SharedDisks(site.store, "a"), SharedDisks(site.store, "b")
        at_a, at_b = tmp_path / "a" / UUID, tmp_path / "b" / UUID
        name = a.make(at_a, "disk", lambda name: site.make(name, BEFORE))
        with site.guest(name) as guest:
            with pytest.raises(DiskInUse, match="Power its host off"):
                b.take_over(at_b, "disk", "a")
            assert guest.write(AFTER)
        assert b.take_over(at_b, "disk", "a") and b.take_over(at_b, "disk", "a")
        if end == "settle":
            b.settle(at_b)
            a.release(at_a)
        b.release(at_b)
        assert site.store.names() == ([] if end == "settle" else [name])


def test_a_snapshot_is_deleted_when_the_disk_s_owner_starts_its_guest(site: Qcow2Site) -> None:
    """Who deletes it may be another host than the one that has the disk open."""
    site.make("disk", BEFORE)
    site.store.make_snapshot("disk", "stash-a-1")
    site.write("disk", AFTER)
    with site.guest("disk"):
        site.store.delete_snapshot("disk", "stash-a-1")
        found = site.store.find("disk")
        assert found is not None and found.snapshots == ()
        assert "stash-a-1" in program("qemu-img", "snapshot", "-U", "-l", site.store.path("disk"))
    site.store.purge("disk")
    assert "stash-a-1" not in program("qemu-img", "snapshot", "-l", site.store.path("disk"))
    assert site.content("disk") == b"x" * 512 + AFTER[512:]
    assert list((site.store.folder / "deleted").iterdir()) == []


def test_a_disk_with_a_bitmap_of_rounds_is_rolled_back(site: Qcow2Site) -> None:
    site.make("disk", BEFORE)
    program("qemu-img", "bitmap", "--add", site.store.path("disk"), "round-1")
    site.store.make_snapshot("disk", "stash-a-1")
    site.write("disk", AFTER)
    site.store.roll_back("disk", "stash-a-1")
    assert site.content("disk") == BEFORE


def test_two_hosts_that_bring_a_base_image_at_once_have_one(site: Qcow2Site, tmp_path: Path) -> None:
    image = BaseImage(tmp_path / "image", "raw", 1 << 20)
    image.path.write_bytes(BEFORE.ljust(1 << 20, b"\0"))
    first = site.store.base("id", image)
    inode = first.path.stat().st_ino
    (site.store.folder / "base" / "id").rename(tmp_path / "aside")
    second = Qcow2Store(site.store.folder, 60.0)
    assert second.base("id", image) == first
    # Another host's file stays, whatever this one brings.
    image.path.write_bytes(AFTER.ljust(1 << 20, b"\0"))
    assert second.base("id", image).path.read_bytes()[: len(BEFORE)] == BEFORE
    assert first.path.stat().st_ino != inode
    assert [path.name for path in (site.store.folder / "base").iterdir()] == ["id"]
