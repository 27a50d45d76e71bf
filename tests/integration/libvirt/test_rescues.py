"""Guests that boot an image's disk beside their own, and their own again."""

from __future__ import annotations

import dataclasses
import hashlib
from typing import Any

import pytest

from causeway.errors import GuestFailed
from causeway.model.rescue import RescueImage
from causeway.model.states import PowerState
from causeway.virt.driver import GuestSpec, Rescue
from causeway.virt.libvirt.commands import run
from tests.integration.libvirt.lab_guests import Cloud, Console, Guest, image_lines

# A guest boots three times and more.
pytestmark = pytest.mark.timeout(300)


def spec_of(guest: Guest, *, again: bool = False, **image: str) -> GuestSpec:
    """As a compute makes it: without volumes, unless all disks stay in place. ``again``: its disk is there."""
    rescue = Rescue(RescueImage("the-image", **image), None if again else guest.base)
    found = dataclasses.replace(guest.spec(), rescue=rescue)
    return found if rescue.image.is_stable else dataclasses.replace(found, volumes=[])


def rescue(guest: Guest, **image: Any) -> Console:
    """The guest once it has booted its rescue disk."""
    driver, boots = guest.driver, guest.console().boots
    driver.prepare_rescue(spec_of(guest, **image))
    driver.power_off(guest.uuid, timeout=60)
    assert driver.power_on(spec_of(guest, again=True, **image)) is PowerState.RUNNING
    return guest.wait_for_boot(boots + 1)


def unrescue(guest: Guest) -> Console:
    boots = guest.console().boots
    guest.driver.power_off(guest.uuid, timeout=60)
    assert guest.driver.power_on(guest.spec()) is PowerState.RUNNING
    guest.driver.delete_rescue_disk(guest.uuid)
    return guest.wait_for_boot(boots + 1)


def content(cloud: Cloud, guest: Guest) -> str:
    """What the guest sees of its own disk, which must be off."""
    disk = cloud.instances_dirs[0] / guest.uuid / "disk"
    copy = cloud.directory / "copy"
    run("qemu-img", "convert", "-q", "-U", "-f", "qcow2", "-O", "raw", disk, copy)
    digest = hashlib.sha256(copy.read_bytes()).hexdigest()
    copy.unlink()
    return digest


def reads(guest: Guest) -> dict[str, int]:
    """disk -> bytes that were read of it since the guest was started."""
    return {disk.device: disk.read_bytes or 0 for disk in guest.driver.diagnostics(guest.uuid).disks}


def test_the_guest_boots_the_image_with_its_own_disk_beside_it(cloud: Cloud) -> None:
    guest = cloud.guest()
    volume = cloud.volume(guest)
    guest.volumes = [volume]
    first = guest.spawn().last("CAUSEWAY-MARKER", disk="vda")
    guest.driver.power_off(guest.uuid, timeout=60)
    before = content(cloud, guest)

    said = rescue(guest)
    # A new disk of the image, and the server's own second: it has a file system, which the guest leaves alone.
    root, second = said.last("CAUSEWAY-MARKER", disk="vda"), said.last("CAUSEWAY-MARKER", disk="vdb")
    assert (root["lines"], root["first"] != first["first"], second["first"]) == ("1", True, "foreign")
    assert guest.driver.is_rescued(guest.uuid) and guest.driver.has_rescue_disk(guest.uuid)
    assert len(image_lines(cloud.path_of(volume))) == 1
    with pytest.raises(GuestFailed, match="is not deleted"):
        guest.driver.delete_rescue_disk(guest.uuid)

    # It is the rescue disk that it boots when it is started again, or by itself.
    guest.driver.reboot(spec_of(guest, again=True), hard=True, timeout=60)
    again = guest.wait_for_boot(3)
    assert again.last("CAUSEWAY-MARKER", disk="vda")["first"] == root["first"]

    guest.driver.power_off(guest.uuid, timeout=60)
    assert content(cloud, guest) == before
    back = unrescue(guest)
    marker = back.last("CAUSEWAY-MARKER", disk="vda")
    assert (marker["first"], marker["lines"]) == (first["first"], "2")
    assert back.last("CAUSEWAY-MARKER", disk="vdb")["lines"] == "2"
    assert not guest.driver.is_rescued(guest.uuid) and not guest.driver.has_rescue_disk(guest.uuid)


@pytest.mark.parametrize("image", [{"device": "disk", "bus": "virtio"}, {"bus": "scsi"}])
def test_all_disks_stay_in_place_and_it_boots_the_rescue_disk(cloud: Cloud, image: dict[str, Any]) -> None:
    guest = cloud.guest()
    guest.volumes = [cloud.volume(guest)]
    guest.spawn()
    rescue(guest, **image)
    read = reads(guest)
    (target,) = set(read) - {"vda", "vdb"}
    # The boot loader, the kernel and its file system.
    assert read[target] > 2 * 2**20, read
    said = unrescue(guest)
    assert set(reads(guest)) == {"vda", "vdb"}
    assert said.last("CAUSEWAY-MARKER", disk="vda")["lines"] == "3"


@pytest.mark.parametrize(
    "image", [{"device": "cdrom"}, {"device": "cdrom", "bus": "scsi"}, {"device": "floppy"}, {"bus": "usb"}]
)
def test_the_hypervisor_takes_every_kind_of_rescue_disk(cloud: Cloud, image: dict[str, Any]) -> None:
    """This image boots from hard disks only."""
    guest = cloud.guest()
    guest.spawn()
    guest.driver.prepare_rescue(spec_of(guest, **image))
    guest.driver.power_off(guest.uuid, timeout=0)
    assert guest.driver.power_on(spec_of(guest, again=True, **image)) is PowerState.RUNNING
    assert guest.driver.is_rescued(guest.uuid)
    guest.driver.power_off(guest.uuid, timeout=0)


def test_a_guest_on_a_volume_is_rescued_and_unrescued(cloud: Cloud) -> None:
    guest = cloud.guest()
    root = cloud.volume(guest, "/dev/vda")
    root.boot_index = 0
    run("qemu-img", "convert", "-f", "qcow2", "-O", "raw", cloud.image.path, cloud.path_of(root))
    guest.volumes = [root]
    guest.driver.spawn(guest.spec())
    first = guest.wait_for_boot().last("CAUSEWAY-MARKER", disk="vda")["first"]
    rescue(guest, device="disk", bus="virtio")
    assert reads(guest)["vdb"] > 2 * 2**20
    assert guest.driver.has_rescue_disk(guest.uuid) and not (cloud.instances_dirs[0] / guest.uuid / "disk").exists()
    assert unrescue(guest).last("CAUSEWAY-MARKER", disk="vda")["first"] == first


def test_a_guest_without_its_own_disk_is_left_as_it_is(cloud: Cloud) -> None:
    guest = cloud.guest()
    guest.spawn()
    disk = cloud.instances_dirs[0] / guest.uuid / "disk"
    hidden = disk.rename(disk.with_name("hidden"))
    with pytest.raises(GuestFailed, match="no root disk"):
        guest.driver.prepare_rescue(spec_of(guest))
    assert guest.driver.inspect(guest.uuid).power_state is PowerState.RUNNING
    assert not guest.driver.has_rescue_disk(guest.uuid)
    hidden.rename(disk)


def test_the_rescue_disk_is_made_anew(cloud: Cloud) -> None:
    guest = cloud.guest()
    guest.spawn()
    first = rescue(guest).last("CAUSEWAY-MARKER", disk="vda")["first"]
    assert rescue(guest).last("CAUSEWAY-MARKER", disk="vda")["first"] != first


def test_one_that_is_not_to_run_is_only_defined(cloud: Cloud) -> None:
    guest = cloud.guest()
    guest.spawn()
    rescue(guest)
    guest.driver.power_off(guest.uuid, timeout=0)
    assert guest.driver.power_on(guest.spec(power_on=False)) is PowerState.SHUTDOWN
    assert not guest.driver.is_rescued(guest.uuid)
    guest.driver.delete_rescue_disk(guest.uuid)
    guest.driver.delete_rescue_disk(guest.uuid)
    assert guest.driver.inspect(guest.uuid).power_state is PowerState.SHUTDOWN
