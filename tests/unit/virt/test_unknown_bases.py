"""Disks on a file that no record names: what nobody is known to have travels with them, and Nova's names of files are known."""

from __future__ import annotations

import hashlib
import os
import shutil
import uuid
from pathlib import Path
from typing import Any

import pytest

from causeway.virt.driver import ROOT_DISK
from causeway.virt.libvirt.commands import run
from causeway.virt.libvirt.live import live_source
from causeway.virt.libvirt.storage import qemu_img
from causeway.virt.libvirt.storage.disks import InstanceDisks

pytestmark = pytest.mark.skipif(shutil.which("qemu-img") is None, reason="qemu-img is not installed")

SERVER, IMAGE = str(uuid.uuid4()), str(uuid.uuid4())
OF_NOVA = hashlib.sha1(IMAGE.encode(), usedforsecurity=False).hexdigest()
EPHEMERAL = "disk.eph0"
SIZE = 1 << 20


class Server:
    """As much of an instance as its disks need."""

    uuid, image_ref = SERVER, IMAGE


@pytest.fixture
def disks(tmp_path: Path) -> InstanceDisks:
    found = InstanceDisks(tmp_path / "instances", 30.0)
    found.make_folder(SERVER)
    (tmp_path / "_base").mkdir()
    # As Nova writes it.
    (found.folder(SERVER) / "disk.info").write_text(f'{{"{found.root(SERVER)}": "qcow2"}}')
    return found


def on(disks: InstanceDisks, name: str, base: str) -> None:
    """Makes a disk on a base file that is full of data."""
    below = disks.directory.parent / "_base" / base
    below.write_bytes(os.urandom(SIZE))
    disk = disks.folder(SERVER) / name
    run("qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", below, disk, "1M")


def exported(disks: InstanceDisks, name: str) -> tuple[str | None, int]:
    """The image that a copy stands on, and how many bytes it has."""
    with disks.export(SERVER, name, image_ref=IMAGE, flatten=False) as copy:
        assert qemu_img.layer_below(copy.path) is None
        return copy.base_image_id, copy.path.stat().st_size


@pytest.mark.parametrize("name", [IMAGE, OF_NOVA], ids=["of ours", "of Nova"])
def test_a_disk_on_its_servers_image_travels_without_that(disks: InstanceDisks, name: str) -> None:
    on(disks, ROOT_DISK, name)
    base, size = exported(disks, ROOT_DISK)
    assert base == disks.base_image_of(SERVER, IMAGE) == IMAGE and size < SIZE


@pytest.mark.parametrize("disk", [ROOT_DISK, EPHEMERAL])
def test_a_disk_on_an_unknown_file_travels_with_all_that_is_in_it(disks: InstanceDisks, disk: str) -> None:
    on(disks, disk, hashlib.sha1(b"a snapshot", usedforsecurity=False).hexdigest())
    base, size = exported(disks, disk)
    assert base is None and size > SIZE


def test_disks_go_live_with_all_that_is_in_them_if_one_stands_on_an_unknown_file(disks: InstanceDisks) -> None:
    server: Any = Server()
    on(disks, ROOT_DISK, OF_NOVA)
    assert not live_source.must_be_whole(disks, server, [ROOT_DISK])
    on(disks, EPHEMERAL, "ephemeral_1_40d1d2c")
    assert live_source.must_be_whole(disks, server, [ROOT_DISK, EPHEMERAL])
    assert live_source.bases_of(disks, server, [ROOT_DISK, EPHEMERAL]) == {ROOT_DISK: None, EPHEMERAL: None}
    assert live_source.bases_of(disks, server, [ROOT_DISK]) == {ROOT_DISK: IMAGE}
