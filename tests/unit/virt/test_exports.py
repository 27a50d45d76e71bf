"""Copies of disks that libvirt's driver makes for images and moves."""

from __future__ import annotations

import uuid as uuids
from pathlib import Path

import pytest

from causeway.virt.libvirt.connection import Connection
from causeway.virt.libvirt.storage import temporary_files
from causeway.virt.libvirt.storage.disks import InstanceDisks
from causeway.virt.libvirt.storage.rounds import Rounds

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


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("exports", f"export-{SERVER}-disk-of-before.qcow2"),
        ("switches", f"switch-{SERVER}.json"),
        ("rounds", f"rounds-{SERVER}.json"),
        ("frozen", f"frozen-{SERVER}"),
    ],
    ids=["exports", "switches", "rounds", "frozen"],
)
def test_what_is_beside_the_folders_of_guests_is_found_and_can_be_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, name: str
) -> None:
    monkeypatch.setattr(Connection, "call", lambda *_args, **_named: None)
    disks = InstanceDisks(tmp_path, 10.0)
    (tmp_path / "owner").touch()
    (tmp_path / SERVER).mkdir()
    (tmp_path / name).write_text("{}")
    rounds = Rounds(Connection("test:///default", name="here", timeout=10.0), disks)
    with disks.export_beside_guest(str(uuids.uuid4()), "disk", copy):
        assert temporary_files.listed(disks) == {kind: [SERVER]}
    temporary_files.discard(disks, rounds, kind, SERVER)
    temporary_files.discard(disks, rounds, kind, SERVER)
    assert temporary_files.listed(disks) == {}
    assert {path.name for path in tmp_path.iterdir()} == {"owner", SERVER}
