"""Copies of disks that libvirt's driver makes for images and moves."""

from __future__ import annotations

import uuid as uuids
from pathlib import Path

from causeway.virt.libvirt.storage.disks import InstanceDisks

SERVER = str(uuids.uuid4())


def copy(_disk: Path, target: Path) -> None:
    target.write_bytes(b"copy")


def test_a_copy_that_is_still_uploaded_stays_when_the_disk_is_copied_again(tmp_path: Path) -> None:
    """An upload is not locked: its server may move meanwhile, and a client opens the file again for a second attempt."""
    disks = InstanceDisks(tmp_path, 10.0)
    with disks.export_beside_guest(SERVER, "disk", copy) as image:
        with disks.export_beside_guest(SERVER, "disk", copy) as move:
            assert image.path.read_bytes() == move.path.read_bytes() == b"copy"
        assert image.path.exists()
    assert not list(tmp_path.iterdir())


def test_copies_of_a_process_that_was_killed_are_deleted_with_the_next(tmp_path: Path) -> None:
    stale = tmp_path / f"export-{SERVER}-disk-of-before.qcow2"
    stale.touch()
    other = tmp_path / f"export-{SERVER}-disk.eph0-of-before.qcow2"
    other.touch()
    with InstanceDisks(tmp_path, 10.0).export_beside_guest(SERVER, "disk", copy):
        assert not stale.exists()
    assert list(tmp_path.iterdir()) == [other]
