"""Volumes that are files: what a guest writes into a raw file does not make the file something else."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from causeway.errors import GuestFailed
from causeway.model.block_device import BlockDevice
from causeway.virt.libvirt.storage import qemu_img, volume_files
from causeway.virt.libvirt.storage.qemu_img import Layer
from causeway.virt.libvirt.storage.volumes import Volumes
from tests.security.images.contents import MIB, qcow2, vmdk_text
from tests.unit.virt.ceph_host import no_ceph, no_secrets, no_shares

pytestmark = pytest.mark.skipif(shutil.which("qemu-img") is None, reason="qemu-img is not installed")


def overlay(on: Path, name: str, below: str) -> Path:
    """As block storage makes it: it names the file below without a folder."""
    path = on.with_name(name)
    command = ["qemu-img", "create", "-q", "-u", "-f", "qcow2", "-b", on.name, "-F", below, path.name, str(MIB)]
    subprocess.run(command, check=True, cwd=on.parent)
    return path


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "elsewhere" / "secret"
    path.parent.mkdir()
    path.write_bytes(b"of this host".ljust(MIB, b"\0"))
    return path


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    path = tmp_path / "share" / "volume"
    path.parent.mkdir()
    path.write_bytes(bytes(MIB))
    return path


@pytest.mark.parametrize("form", ["qcow2", "vmdk"])
@pytest.mark.parametrize("merged", [None, "volume"])
def test_a_raw_file_that_its_guest_made_look_like_another_format_stays_raw(
    volume: Path, secret: Path, form: str, merged: str | None
) -> None:
    written = qcow2(backing=secret) if form == "qcow2" else vmdk_text(secret)
    volume.write_bytes(written.ljust(MIB, b"\0"))
    first = overlay(volume, "first", "raw")
    second = overlay(first, "second", "qcow2")
    volume_files.merge_off(second, merged)
    assert qemu_img.layer_below(second) == (None if merged is None else Layer(volume, "raw"))
    assert b"of this host" not in second.read_bytes()
    if merged is None:
        flat = second.with_name("flat")
        subprocess.run(["qemu-img", "convert", "-f", "qcow2", "-O", "raw", str(second), str(flat)], check=True)
        assert flat.read_bytes() == volume.read_bytes()


def test_files_elsewhere_are_not_merged(volume: Path, secret: Path) -> None:
    top = volume.with_name("top")
    qemu_img.create(top, MIB, Layer(secret, "raw"))
    for merged in (None, "secret"):
        with pytest.raises(GuestFailed, match="not beside it"):
            volume_files.merge_off(top, merged)
    assert b"of this host" not in top.read_bytes()


def test_a_file_whose_format_was_not_recorded_is_not_guessed(volume: Path) -> None:
    top = overlay(volume, "top", "raw")
    # The header extension with the format becomes one that nobody knows.
    top.write_bytes(top.read_bytes().replace(bytes.fromhex("e2792aca"), bytes.fromhex("e2792acb"), 1))
    with pytest.raises(GuestFailed, match="not known to be raw or qcow2"):
        volume_files.merge_off(top, None)


def test_files_that_stand_on_one_another_in_a_circle_end(volume: Path) -> None:
    top = overlay(volume, "top", "raw")
    qemu_img.name_below(top, Layer(top, "qcow2"))
    with pytest.raises(GuestFailed, match="not beside it"):
        volume_files.merge_off(top, None)


def test_a_file_that_is_not_below_is_not_merged_into(volume: Path) -> None:
    other = volume.with_name("other")
    other.write_bytes(bytes(MIB))
    with pytest.raises(GuestFailed, match="no file other below"):
        volume_files.merge_off(overlay(volume, "top", "raw"), "other")


@pytest.mark.parametrize("said", ["vmdk", "vpc", "json:", "luks"])
def test_a_volume_is_raw_or_qcow2(tmp_path: Path, volume: Path, said: str) -> None:
    info = {"driver_volume_type": "nfs", "data": {"format": said}}
    device = BlockDevice("b", "s", "volume", "volume", device_name="/dev/vdb", volume_id="v", connection_info=info)
    volumes = Volumes(
        "host", no_shares(tmp_path / "mnt"), tmp_path / "locks", lambda _id: set(), no_ceph(), no_secrets()
    )
    with pytest.raises(GuestFailed, match=said):
        volumes.as_disk(device, volume, is_block=False)
