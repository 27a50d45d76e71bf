"""Local disks in a folder that hosts share: they move without a copy, and each host deletes only what is its own."""

from __future__ import annotations

import shutil
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from causeway.errors import DiskInUse, GuestFailed, Misconfigured
from causeway.virt.driver import BaseImage, LocalDisk, RootDisk
from causeway.virt.libvirt.storage import qemu_img
from causeway.virt.libvirt.storage.folder_disks import FolderDisks
from causeway.virt.libvirt.storage.qcow2_store import Qcow2Store

pytestmark = pytest.mark.skipif(shutil.which("qemu-io") is None, reason="qemu-io is not installed")

SERVER, IMAGE = str(uuid.uuid4()), str(uuid.uuid4())
MIB, GIB = 1 << 20, 1 << 30


@dataclass
class Site:
    """Two hosts, ``a`` and ``b``, that mount one folder."""

    folder: Path

    def __post_init__(self) -> None:
        self.a, self.b = self._host("a"), self._host("b")
        (self.folder / "image").write_bytes(b"of the image".ljust(MIB, b"\0"))
        self.base = BaseImage(self.folder / "image", "raw", MIB)

    def _host(self, name: str) -> FolderDisks:
        disks = FolderDisks(self.folder / name, 60.0, Qcow2Store(self.folder / "shared", 60.0), name)
        disks.start()
        return disks

    @property
    def stored(self) -> set[str]:
        return {path.name for path in (self.folder / "shared" / "disks").iterdir()}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def write(disks: FolderDisks, text: str, name: str = "disk") -> None:
    words = ["qemu-io", "-f", "qcow2", "-c", f"write -P {ord(text)} 512K 512", str(disks.source(SERVER, name))]
    subprocess.run(words, check=True, capture_output=True, timeout=60)


def read(disks: FolderDisks, name: str = "disk") -> tuple[bytes, str]:
    """What a disk has of its image, and what was written last."""
    copy = disks.directory / "read"
    path = disks.source(SERVER, name)
    words = ["qemu-img", "dd", "-U", "-f", "qcow2", "-O", "raw", "bs=512", "count=1025", f"if={path}", f"of={copy}"]
    subprocess.run(words, check=True, capture_output=True, timeout=60)
    content = copy.read_bytes()
    return content[:12].strip(b"\0"), content[512 << 10 : (512 << 10) + 1].decode()


def root(site: Site, **more: object) -> RootDisk:
    return RootDisk(site.base, IMAGE, size_gb=1, **more)  # type: ignore[arg-type]


def made(site: Site) -> FolderDisks:
    """A server at host ``a``, with a root disk, an ephemeral one and swap."""
    site.a.create_root(SERVER, root(site))
    site.a.make_local(SERVER, LocalDisk("disk.eph0", "/dev/vdb", 4))
    site.a.make_local(SERVER, LocalDisk("disk.swap", "/dev/vdc", 2))
    site.a.check_usable(SERVER)
    write(site.a, "1")
    return site.a


def moved(site: Site, *, size_gb: int = 2, swap_mb: int = 3) -> FolderDisks:
    """The server at ``b``, larger, where its guest has written."""
    offered = made(site).offered(SERVER)
    site.a.stash(SERVER)
    assert site.b.reaches(offered)
    site.b.create_root(SERVER, RootDisk(None, None, size_gb=size_gb, shared=offered["disk"]))
    site.b.make_local(SERVER, LocalDisk("disk.eph0", "/dev/vdb", 8, shared=offered["disk.eph0"]))
    site.b.make_local(SERVER, LocalDisk("disk.swap", "/dev/vdc", swap_mb, shared=offered["disk.swap"]))
    site.b.check_usable(SERVER)
    assert read(site.b) == (b"of the image", "1")
    write(site.b, "2")
    return site.b


def sizes(disks: FolderDisks) -> dict[str, int]:
    return {name: disks.size_in_storage(SERVER, name) for name in disks.in_storage(SERVER)}


def test_a_disk_stands_on_a_base_image_that_all_hosts_have_once(site: Site) -> None:
    made(site)
    assert sizes(site.a) == {"disk": GIB, "disk.eph0": 4 * MIB, "disk.swap": 2 * MIB}
    below = qemu_img.layer_below(site.a.root(SERVER))
    assert below is not None and below.path == site.folder / "shared" / "base" / IMAGE
    assert site.a.base_image_of(SERVER, "another") == IMAGE
    # A host's own copy is needed no more.
    site.base.path.unlink()
    assert read(site.a) == (b"of the image", "1")


@pytest.mark.parametrize("end", ["confirm", "revert"])
def test_in_a_move_disks_stay_where_they_are(site: Site, end: str) -> None:
    moved(site)
    inodes = {path.name: path.stat().st_ino for path in (site.folder / "shared" / "disks").iterdir()}
    if end == "confirm":
        for _ in range(2):
            site.a.delete_stashed(SERVER)
        site.b.check_usable(SERVER)
        assert sizes(site.b) == {"disk": 2 * GIB, "disk.eph0": 8 * MIB, "disk.swap": 3 * MIB}
        assert read(site.b) == (b"of the image", "2")
        assert qemu_img.info(site.b.root(SERVER)).get("snapshots", []) == []
        at = site.b
    else:
        site.b.delete(SERVER)
        for _ in range(2):
            site.a.restore(SERVER)
        site.a.check_usable(SERVER)
        assert sizes(site.a) == {"disk": GIB, "disk.eph0": 4 * MIB, "disk.swap": 2 * MIB}
        assert read(site.a) == (b"of the image", "1")
        at = site.a
    assert {path.name: path.stat().st_ino for path in (site.folder / "shared" / "disks").iterdir()} == inodes
    at.delete(SERVER)
    assert site.stored == set() and not site.a.by_uuid() and not site.b.by_uuid()


def test_a_host_that_lost_a_server_deletes_nothing_of_it(site: Site) -> None:
    """As one that was down while its server was evacuated."""
    made(site)
    assert site.b.take_over(SERVER, ["disk", "disk.eph0", "disk.swap"], "a") == ["disk", "disk.eph0", "disk.swap"]
    site.b.create_root(SERVER, root(site))
    site.b.settle(SERVER)
    site.b.check_usable(SERVER)
    with pytest.raises(GuestFailed, match="belongs to another host by now"):
        site.a.check_usable(SERVER)
    site.a.delete(SERVER)
    assert read(site.b) == (b"of the image", "1") and len(site.stored) == 3


def test_a_disk_that_a_guest_has_open_is_neither_taken_over_nor_started_again(site: Site) -> None:
    made(site)
    with running(site.a):
        with pytest.raises(DiskInUse):
            site.b.take_over(SERVER, ["disk"], "a")
        with pytest.raises(DiskInUse):
            site.a.check_usable(SERVER)
    assert site.b.take_over(SERVER, ["disk"], "a") == ["disk"]


@contextmanager
def running(disks: FolderDisks) -> Iterator[None]:
    words = ["qemu-io", "-f", "qcow2", str(disks.source(SERVER, "disk"))]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as guest:
        assert guest.stdin is not None and guest.stdout is not None
        guest.stdin.write("write 0 512\n")
        assert "wrote" in guest.stdout.readline()
        yield
        guest.kill()


def test_a_disk_from_a_host_without_the_folder_is_put_into_it(site: Site) -> None:
    came = site.folder / "came"
    qemu_img.create(came, MIB)
    subprocess.run(["qemu-io", "-f", "qcow2", "-c", "write -P 57 512K 512", came], check=True, capture_output=True)
    for _ in range(2):
        site.a.create_root(SERVER, root(site, snapshot=came))
        assert read(site.a) == (b"of the image", "9") and sizes(site.a) == {"disk": GIB}
        assert site.a.root(SERVER).is_symlink() and qemu_img.layer_below(site.a.root(SERVER)) is None


def test_a_copy_for_a_host_without_the_folder_has_what_is_not_in_the_image(site: Site) -> None:
    made(site)
    with site.a.export(SERVER, "disk", image_ref=IMAGE, flatten=False) as exported:
        assert exported.base_image_id == IMAGE and qemu_img.layer_below(exported.path) is None
    site.a.stash(SERVER)
    with site.a.export(SERVER, "disk", image_ref="another", flatten=False) as exported:
        assert exported.base_image_id == IMAGE


def test_a_link_that_is_gone_is_made_again_before_a_guest_starts(site: Site) -> None:
    made(site)
    site.a.root(SERVER).unlink()
    site.a.check_usable(SERVER)
    assert read(site.a) == (b"of the image", "1")


def test_a_host_whose_folder_is_not_mounted_does_not_start(site: Site) -> None:
    made(site)
    (site.folder / "shared").rename(site.folder / "elsewhere")
    (site.folder / "shared").mkdir()
    with pytest.raises(Misconfigured, match="Mount it"):
        site.a.start()
    assert list((site.folder / "shared").iterdir()) == []
    # One that has no guests there begins.
    site.b.start()


def test_a_rebuilt_disk_is_a_new_one(site: Site) -> None:
    made(site)
    site.a.delete(SERVER)
    site.a.create_root(SERVER, root(site))
    assert read(site.a) == (b"of the image", "\0")
