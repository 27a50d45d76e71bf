"""What a real hypervisor and QEMU's tool say of the copy of a server that is to be kept."""

from __future__ import annotations

from pathlib import Path

from causeway.virt.driver import ROOT_DISK, ExpectedDisk
from tests.integration.libvirt.lab_guests import Cloud

DISKS = [ExpectedDisk(ROOT_DISK, 1024)]


def disk_of(cloud: Cloud, uuid: str, *, stashed: bool = False) -> Path:
    folder = uuid + ("_resize" if stashed else "")
    return next(found for where in cloud.instances_dirs for found in [where / folder / ROOT_DISK] if found.exists())


def test_a_copy_counts_if_guest_and_disks_are_whole(cloud: Cloud) -> None:
    guest = cloud.guest()
    driver, uuid = guest.driver, guest.uuid
    driver.spawn(guest.spec(guest.new_disk()))
    disk = disk_of(cloud, uuid)

    # It runs.
    assert driver.copy_faults(uuid, DISKS, []) == []
    assert "smaller than 2048 MiB" in driver.copy_faults(uuid, [ExpectedDisk(ROOT_DISK, 2048)], [])[0]
    assert driver.copy_faults(uuid, [*DISKS, ExpectedDisk("disk.eph0", 1)], []) != []
    assert "volume 4711" in driver.copy_faults(uuid, DISKS, ["4711"])[0]
    aside = disk.rename(disk.with_name("aside"))
    # QEMU has it open, and would never find it again.
    assert driver.copy_faults(uuid, DISKS, []) != []
    aside.rename(disk)
    assert driver.copy_faults(uuid, DISKS, []) == []

    # It is off.
    driver.power_off(uuid, 0)
    assert driver.copy_faults(uuid, DISKS, []) == []
    whole = disk.read_bytes()
    for damaged in (b"", whole[:100], whole[: len(whole) // 2], whole[:65536] + b"\xff" * 65536 + whole[131072:]):
        disk.write_bytes(damaged)
        assert driver.copy_faults(uuid, DISKS, []) != [], len(damaged)
    disk.write_bytes(whole)

    # It is stashed.
    driver.destroy(uuid, [], [], destroy_disks=False)
    driver.stash_disks(uuid)
    assert driver.copy_faults(uuid, DISKS, [], stashed=True) == []
    disk_of(cloud, uuid, stashed=True).write_bytes(whole[: len(whole) // 2])
    assert driver.copy_faults(uuid, DISKS, [], stashed=True) != []
    driver.delete_stashed_disks(uuid)
    assert driver.copy_faults(uuid, DISKS, [], stashed=True) != []
