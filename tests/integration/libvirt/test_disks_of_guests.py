"""Ephemeral disks, swap and the larger root disk, as real guests see them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from causeway.errors import GuestFailed
from causeway.virt.driver import ROOT_DISK, GuestSpec, LocalDisk, RootDisk
from causeway.virt.libvirt.commands import run
from causeway.virt.libvirt.storage import qemu_img
from tests.integration.libvirt.lab_guests import Cloud, Guest

# Prints of every disk its size in sectors of 512 bytes and what is on it; leaves a file on the ephemeral one.
LOOK = b"""#!/bin/sh
mkdir -p /ephemeral
mount -t ext4 /dev/vdb /ephemeral && kept=$(cat /ephemeral/kept 2>/dev/null)
echo precious > /ephemeral/kept
sync
umount /ephemeral
swap=$(dd if=/dev/vdc bs=1 skip=4086 count=10 2>/dev/null)
echo "CAUSEWAY-DISKS vda=$(cat /sys/block/vda/size) vdb=$(cat /sys/block/vdb/size) vdc=$(cat /sys/block/vdc/size)" \\
    "kept=$kept swap=$swap" > /dev/console
"""
MIB = 2048  # sectors


def files() -> dict[str, bytes]:
    return {"openstack/latest/meta_data.json": b'{"hostname": "disks"}', "openstack/latest/user_data": LOOK}


def spec(guest: Guest, root: RootDisk | None, *local: LocalDisk) -> GuestSpec:
    found = guest.spec(root)
    found.config_drive, found.local_disks = files(), list(local)
    return found


def ephemeral(size_mb: int, snapshot: Path | None = None) -> LocalDisk:
    return LocalDisk("disk.eph0", "/dev/vdb", size_mb, "ext4", "ephemeral0", snapshot=snapshot)


def swap(size_mb: int) -> LocalDisk:
    return LocalDisk("disk.swap", "/dev/vdc", size_mb, "swap")


def seen(guest: Guest) -> dict[str, str]:
    said = guest.wait(lambda said: "CAUSEWAY-DISKS" in said.text and said.boots)
    return said.last("CAUSEWAY-DISKS")


def test_a_guest_and_its_disks_grow_on_the_way_to_another_host(cloud: Cloud, tmp_path: Path) -> None:
    guest = cloud.guest()
    guest.driver.spawn(spec(guest, guest.new_disk(), ephemeral(64), swap(16)))
    assert seen(guest) == {
        "vda": str(1024 * MIB), "vdb": str(64 * MIB), "vdc": str(16 * MIB), "kept": "", "swap": "SWAPSPACE2"
    }  # fmt: skip
    guest.driver.power_off(guest.uuid, timeout=60)
    received = {}
    for name in (ROOT_DISK, "disk.eph0"):
        with guest.driver.export_disk(guest.instance, name, flatten=name != ROOT_DISK) as export:
            assert export.name == name
            received[name] = tmp_path / name
            shutil.copy(export.path, received[name])
    # An empty file system is small, whatever size it has.
    assert received["disk.eph0"].stat().st_size < 16 * 2**20
    guest.driver.destroy(guest.uuid, [], [], destroy_disks=False)
    guest.driver.stash_disks(guest.uuid)

    guest.driver = cloud.drivers[1]
    root = RootDisk(guest.base, "the-image", snapshot=received[ROOT_DISK], size_gb=2)
    guest.driver.spawn(spec(guest, root, ephemeral(128, received["disk.eph0"]), swap(32)))
    assert seen(guest) == {
        "vda": str(2048 * MIB), "vdb": str(128 * MIB), "vdc": str(32 * MIB), "kept": "precious", "swap": "SWAPSPACE2"
    }  # fmt: skip


def test_a_host_without_the_tool_for_a_format_says_so(cloud: Cloud) -> None:
    guest = cloud.guest()
    disk = LocalDisk("disk.eph0", "/dev/vdb", 64, "nonsense")
    with pytest.raises(GuestFailed, match="can't format a disk as nonsense"):
        guest.driver.spawn(spec(guest, guest.new_disk(), disk))
    assert not guest.driver.inspect(guest.uuid).has_disks


def test_growing_never_trusts_what_the_guest_wrote(cloud: Cloud, tmp_path: Path) -> None:
    """Bug 2137507: without its format named, a disk would be taken for what its guest wrote to its beginning."""
    guest = cloud.guest()
    inner, secret = tmp_path / "inner", tmp_path / "secret"
    secret.write_bytes(b"secret" * 1000)
    run("qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", secret, inner)
    disk = cloud.instances_dirs[0] / guest.uuid / "disk.eph0"
    disk.parent.mkdir(parents=True)
    run("qemu-img", "create", "-q", "-f", "qcow2", disk, "64M")
    run("qemu-img", "convert", "-q", "-n", "-f", "raw", "-O", "qcow2", inner, disk)
    guest.driver.spawn(spec(guest, guest.new_disk(), ephemeral(128)))
    info = qemu_img.info(disk)
    assert info["virtual-size"] == 128 * 2**20 and "backing-filename" not in info
