"""NFS shares are unmounted with the last volume of them that a guest here has."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("libvirt")

from causeway.errors import GuestFailed
from causeway.virt.libvirt.storage import shares as module
from causeway.virt.libvirt.storage.shares import Shares

SHARE = "192.0.2.7:/volumes"
# Also Nova mounts a share there, below its nfs_mount_point_base.
NAME = hashlib.md5(SHARE.encode(), usedforsecurity=False).hexdigest()


class Host:
    """``mounted``: where shares are; ``guests``: those that have a disk in a share's folder; ``fails``: `umount` does."""

    def __init__(self, folder: Path) -> None:
        self.base = folder / "mnt"
        self.mounted = folder / "mountinfo"
        self.guests: set[str] = set()
        self.fails = False
        self.shares = Shares(self.base, lambda name: self.guests if name == NAME else set())
        self.mount(self.base / NAME)

    def mount(self, *points: Path) -> None:
        self.mounted.write_text("".join(f"36 35 0:44 / {point} rw - nfs4 {SHARE} rw\n" for point in points))

    def run(self, *command: Any, timeout: float) -> None:
        assert command == ("umount", self.base / NAME) and timeout > 0
        if self.fails:
            raise GuestFailed("'umount' failed.", details="target is busy")
        self.mount()

    @property
    def is_mounted(self) -> bool:
        return NAME in self.mounted.read_text()


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    host = Host(tmp_path)
    monkeypatch.setattr(module, "_MOUNTS", host.mounted)
    monkeypatch.setattr(module, "run", host.run)
    return host


def connect(host: Host, volume_id: str) -> None:
    with host.shares.connecting(SHARE, volume_id):
        pass


def test_a_share_stays_until_its_last_volume_is_disconnected(host: Host) -> None:
    for volume in ("first", "second"):
        connect(host, volume)
    host.shares.release(SHARE, "first")
    assert host.is_mounted
    host.shares.release(SHARE, "second")
    assert not host.is_mounted
    host.shares.release(SHARE, "second")


def test_a_share_that_another_process_mounted_is_unmounted_when_no_guest_is_left_in_it(host: Host) -> None:
    host.guests = {"another"}
    host.shares.release(SHARE, "first")
    assert host.is_mounted
    host.guests = set()
    host.shares.release(SHARE, "second")
    assert not host.is_mounted


def test_a_share_stays_mounted_if_it_can_not_be_unmounted(host: Host, caplog: pytest.LogCaptureFixture) -> None:
    host.fails = True
    host.shares.release(SHARE, "first")
    assert host.is_mounted and SHARE in caplog.text
