"""How much room a host has for the disks of a guest that is to come."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from causeway.virt.libvirt.storage.disks import InstanceDisks

UUID = "6d9f6a0c-5f8e-4b3b-9a53-2a4b1c0d7e11"
MIB, GIB = 1 << 20, 1 << 30


def test_without_over_commit_what_disks_may_grow_by_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: SimpleNamespace(free=100 * GIB))
    disks = InstanceDisks(tmp_path, 30.0)
    assert disks.room(over_commit=False) == 100 * GIB
    # One whose server waits for a confirmation may come back, too.
    for folder, name, size in ((UUID, "disk", 20), (UUID, "disk.eph0", 10), (f"{UUID}_resize", "disk", 5)):
        path = tmp_path / folder / name
        path.parent.mkdir(exist_ok=True)
        subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", path, f"{size}G"], check=True)
    (tmp_path / UUID / "disk.config").write_bytes(bytes(MIB))
    assert disks.room(over_commit=True) == 100 * GIB
    assert 65 * GIB <= disks.room(over_commit=False) < 65 * GIB + 10 * MIB
