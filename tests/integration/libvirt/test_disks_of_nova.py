"""Guests whose disks stand on files as Nova leaves them: a snapshot that no record names, and bases of ephemeral disks."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from causeway.virt.driver import LocalDisk
from causeway.virt.lab.hosts import missing
from causeway.virt.libvirt.commands import run
from causeway.virt.live_guest import LiveOptions, Presence
from tests.integration.libvirt.lab_guests import Cloud, Guest
from tests.integration.libvirt.lab_journeys import no_word

if missing() is None:
    from causeway.virt.libvirt.storage import qemu_img

pytestmark = pytest.mark.timeout(240)
MIB = 2**20
EPHEMERAL = LocalDisk("disk.eph0", "/dev/vdb", 64, label="ephemeral0")


@pytest.fixture
def guest(cloud: Cloud) -> Guest:
    """Its root disk stands on a file with an unknown name, its ephemeral disk on one that is full of data."""
    guest = cloud.guest()
    driver = guest.driver
    driver.spawn(replace(guest.spec(guest.new_disk()), local_disks=[EPHEMERAL]))
    guest.wait_for_boot()
    driver.power_off(guest.uuid, timeout=60)
    folder, bases = driver._disks.folder(guest.uuid), driver._disks.directory / "_base"
    bases.mkdir(exist_ok=True)
    below = qemu_img.layer_below(folder / "disk")
    assert below is not None
    snapshot, ephemeral = bases / f"snapshot-{guest.uuid}", bases / "ephemeral_1_40d1d2c"
    shutil.copy(below.path, snapshot)
    ephemeral.write_bytes(os.urandom(64 * MIB))
    run("qemu-img", "rebase", "-u", "-f", "qcow2", "-F", below.disk_format, "-b", snapshot, folder / "disk")
    run("qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", ephemeral, folder / "disk.eph0", "64M")
    (folder / "disk.info").write_text(json.dumps({str(folder / "disk"): "qcow2"}))
    driver.power_on(replace(guest.spec(), local_disks=[EPHEMERAL]))
    guest.wait_for_boot(2)
    return guest


def test_a_guest_goes_live_with_all_that_its_disks_show(guest: Guest, cloud: Cloud) -> None:
    source, target = cloud.drivers
    said = source.live_source(guest.instance)
    assert {disk.name: disk.base_image_id for disk in said.disks} == {"disk": None, "disk.eph0": None}
    spec = replace(guest.spec(guest.new_disk()), local_disks=[EPHEMERAL])
    source.live_migrate(spec, target.prepare_live_target(spec, said), LiveOptions(), no_word)
    assert target.presence(guest.uuid) is Presence.RUNNING
    here, there = (driver._disks.folder(guest.uuid) for driver in (source, target))
    assert qemu_img.layer_below(there / "disk") is qemu_img.layer_below(there / "disk.eph0") is None
    run("qemu-img", "compare", "-U", here / "disk.eph0", there / "disk.eph0")
    source.destroy(guest.uuid, guest.vifs, guest.volumes, destroy_disks=True)
    guest.driver = target
    target.power_off(guest.uuid, timeout=60)
    assert target.power_on(replace(spec, root_disk=None))
    assert guest.wait_for_boot().last("CAUSEWAY-GUEST")["boot"] == "3"


@pytest.mark.parametrize("name", ["disk", "disk.eph0"])
def test_a_round_has_all_that_a_disk_shows(guest: Guest, tmp_path: Path, name: str) -> None:
    driver = guest.driver
    begun = driver.begin_round(guest.instance, ["disk", "disk.eph0"], 1, since=None, flatten=False)
    assert [disk.base_image_id for disk in begun.disks] == [None, None]
    size = next(disk.size for disk in begun.disks if disk.name == name)
    copy = tmp_path / "copy"
    with driver.open_round(guest.instance, name, 1) as reader, copy.open("wb") as file:
        file.truncate(size)
        for offset, length in reader.extents():
            for part in range(offset, offset + length, MIB):
                file.seek(part)
                file.write(reader.read(part, min(MIB, offset + length - part)))
    driver.end_round(guest.instance, 1)
    driver.end_rounds(guest.uuid)
    driver.power_off(guest.uuid, timeout=60)
    if name == "disk.eph0":
        run("qemu-img", "compare", "-F", "qcow2", copy, driver._disks.folder(guest.uuid) / name)
    below = qemu_img.layer_below(driver._disks.folder(guest.uuid) / name)
    assert below is not None
    # What the guest did not write since is in the copy, though it is in the file below the disk only.
    assert copy.stat().st_blocks * 512 > 0.9 * below.path.stat().st_blocks * 512
