"""Real disk files of a resize to the host that the server is on: what is offered stays as it was, however often it is taken."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from causeway.compute.disks.disk_offers import DiskOffers, Manifest
from causeway.compute.disks.image_cache import ImageCache
from causeway.compute.handover import disk_transfer
from causeway.model.outcomes import DiskOffer, OperationToken
from causeway.virt.driver import ROOT_DISK, BaseImage, DiskExport, LocalDisk, RootDisk
from causeway.virt.libvirt.commands import run
from causeway.virt.libvirt.storage import qemu_img
from causeway.virt.libvirt.storage.disks import InstanceDisks

pytestmark = pytest.mark.skipif(shutil.which("qemu-img") is None, reason="qemu-img is not installed")

SERVER, MOVE = str(uuid.uuid4()), str(uuid.uuid4())
TOKEN = OperationToken(MOVE, "migration", 1, "FinishAtTarget")
MIB = 1 << 20


@dataclass
class Server:
    """As much of an instance as a transfer needs."""

    uuid: str


@dataclass
class Host:
    """As much of a host as taking its own offer needs."""

    directory: Path
    offers: DiskOffers
    image_cache: ImageCache
    disks: InstanceDisks

    @property
    def base(self) -> BaseImage:
        return BaseImage(self.image_cache.path("base"), "raw", MIB)

    def offer(self) -> Manifest:
        """The root disk over its base image, and an ephemeral disk."""

        @contextmanager
        def export(name: str) -> Iterator[DiskExport]:
            path = self.directory / f"export-{name}"
            run("qemu-img", "create", "-q", "-f", "qcow2", path, "1M")
            yield DiskExport(name, path, "qcow2", path.stat().st_size)

        return self.offers.make(MOVE, SERVER, [ROOT_DISK, "disk.eph0"], export)

    def take(self, offered: Manifest) -> None:
        """What `finish_snapshot_based_resize_at_dest` does with the disks of one attempt."""
        there: Any = self
        server: Any = Server(SERVER)
        there.image_cache.discard_received(SERVER)
        paths = disk_transfer.take(there, TOKEN, server, DiskOffer("", "", offered.disks))
        self.disks.create_root(SERVER, RootDisk(self.base, "base", snapshot=paths[ROOT_DISK], size_gb=1))
        wanted = LocalDisk("disk.eph0", "/dev/vdb", 2, None, "ephemeral0", snapshot=paths["disk.eph0"])
        self.disks.make_local(SERVER, wanted)

    def digests(self) -> dict[str, str]:
        files = {name: self.offers.path(MOVE, name) for name in (ROOT_DISK, "disk.eph0")}
        return {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items() if path is not None}


@pytest.fixture
def host(tmp_path: Path) -> Host:
    nobody: Any = None
    cache = ImageCache(tmp_path / "_base", nobody)
    made = Host(tmp_path, DiskOffers(tmp_path / "offers"), cache, InstanceDisks(tmp_path / "instances", 30.0))
    run("qemu-img", "create", "-q", "-f", "raw", made.base.path, "1M")
    return made


def test_what_failed_after_the_disks_were_taken_is_done_again(host: Host) -> None:
    offered = host.offer()
    host.take(offered)
    # Something else failed: the attempt's disks are removed, and it begins again.
    host.disks.delete(SERVER)
    host.take(offered)
    root, ephemeral = host.disks.root(SERVER), host.disks.folder(SERVER) / "disk.eph0"
    assert qemu_img.info(root)["virtual-size"] == 1 << 30
    assert qemu_img.info(root)["full-backing-filename"] == str(host.base.path)
    assert qemu_img.info(ephemeral)["virtual-size"] == 2 * MIB


def test_what_the_guest_writes_does_not_go_into_the_offer(host: Host) -> None:
    offered = host.offer()
    host.take(offered)
    for name in (ROOT_DISK, "disk.eph0"):
        run("qemu-img", "bench", "-q", "-w", "-c", "1", "-s", "4096", "-f", "qcow2", host.disks.folder(SERVER) / name)
    assert host.digests() == {disk.name: disk.sha256 for disk in offered.disks}
    assert list(host.image_cache.directory.glob("*.part-of-*")) == []


def test_a_disk_that_came_from_another_host_is_not_copied(host: Host) -> None:
    received = host.image_cache.path("received")
    run("qemu-img", "create", "-q", "-f", "qcow2", received, "1M")
    inode = received.stat().st_ino
    host.disks.create_root(SERVER, RootDisk(host.base, "base", snapshot=received, size_gb=1))
    assert host.disks.root(SERVER).stat().st_ino == inode and not received.exists()


def test_a_disk_that_was_received_on_another_mount_is_copied(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    replace = Path.replace

    def between_mounts(source: Path, target: Path) -> Path:
        if source.parent != target.parent:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), str(source), None, str(target))
        return replace(source, target)

    monkeypatch.setattr(Path, "replace", between_mounts)
    received = host.image_cache.path("received")
    run("qemu-img", "create", "-q", "-f", "qcow2", received, "1M")
    host.disks.create_root(SERVER, RootDisk(host.base, "base", snapshot=received, size_gb=1))
    assert qemu_img.info(host.disks.root(SERVER))["full-backing-filename"] == str(host.base.path)
    assert not received.exists()
