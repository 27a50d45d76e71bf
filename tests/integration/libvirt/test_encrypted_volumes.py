"""Real guests read and write plain data on volumes that are LUKS outside, and the key is nowhere but in memory."""

from __future__ import annotations

from typing import Any

import libvirt
import pytest

from causeway.errors import GuestFailed
from causeway.model.block_device import BlockDevice
from causeway.virt.live_guest import LiveOptions
from tests.integration.libvirt.lab_guests import Cloud, Guest
from tests.integration.libvirt.lab_journeys import no_word, prepared
from tests.integration.libvirt.luks_volumes import KEY, MAGIC, command_lines, luks_volume, plain_lines


def secrets_of(guest: Guest) -> list[Any]:
    found: list[Any] = guest.driver._connection.call("list secrets", lambda hypervisor: hypervisor.listAllSecrets())
    return found


def with_luks(cloud: Cloud, disk_format: str = "raw") -> tuple[Guest, BlockDevice]:
    guest = cloud.guest()
    volume = luks_volume(cloud, guest, disk_format)
    guest.volumes.append(volume)
    guest.driver.hold_volume_key(volume, KEY)
    return guest, volume


@pytest.mark.parametrize("disk_format", ["raw", "qcow2"])
def test_a_guest_sees_plain_data_of_a_volume_that_is_luks_outside(cloud: Cloud, disk_format: str) -> None:
    guest, volume = with_luks(cloud, disk_format)
    path = cloud.path_of(volume)
    first = guest.spawn().last("CAUSEWAY-MARKER", disk="vdb")
    content = path.read_bytes()
    assert (content[:8] == MAGIC) is (disk_format == "raw")
    (line,) = plain_lines(path, KEY.text, disk_format)
    assert line.encode() not in content

    guest.driver.hold_volume_key(volume, KEY)
    guest.driver.reboot(guest.spec(), hard=True, timeout=0)
    again = guest.wait_for_boot(2).last("CAUSEWAY-MARKER", disk="vdb")
    assert (again["first"], again["lines"]) == (first["first"], "2")

    (secret,) = secrets_of(guest)
    with pytest.raises(libvirt.libvirtError, match="private"):
        secret.value()
    assert KEY.text not in command_lines()
    for file in guest.driver._instances_dir.rglob("*"):
        assert not file.is_file() or KEY.text.encode() not in file.read_bytes(), file
    guest.driver.destroy(guest.uuid, guest.vifs, guest.volumes, destroy_disks=True)
    assert secrets_of(guest) == []


def test_a_volume_is_attached_to_a_guest_that_runs_and_detached(cloud: Cloud) -> None:
    guest = cloud.guest()
    guest.spawn()
    volume = luks_volume(cloud, guest)
    guest.driver.hold_volume_key(volume, KEY)
    guest.driver.attach_volume(guest.uuid, volume)
    guest.volumes.append(volume)
    # The guest marks what is plugged in.
    guest.wait(lambda said: "disk=vdb" in said.text)
    assert len(plain_lines(cloud.path_of(volume), KEY.text)) == 1
    guest.driver.detach_volume(guest.uuid, volume)
    guest.volumes.clear()
    assert secrets_of(guest) == []
    assert cloud.path_of(volume).read_bytes()[:8] == MAGIC


def test_without_its_key_or_with_another_one_a_guest_does_not_start_and_nothing_is_written(cloud: Cloud) -> None:
    guest, volume = with_luks(cloud)
    before = cloud.path_of(volume).read_bytes()
    guest.driver._volumes.secrets.discard(str(volume.volume_id))
    with pytest.raises(GuestFailed):
        guest.driver.spawn(guest.spec(guest.new_disk()))
    guest.driver.hold_volume_key(volume, type(KEY)("luks", "00" * 32))
    with pytest.raises(GuestFailed):
        guest.driver.spawn(guest.spec(guest.new_disk()))
    assert cloud.path_of(volume).read_bytes() == before


def test_a_guest_migrates_live_with_it(cloud: Cloud) -> None:
    guest, volume = with_luks(cloud)
    first = guest.spawn().last("CAUSEWAY-MARKER", disk="vdb")["first"]
    source, target = guest.driver, cloud.drivers[1]
    target.hold_volume_key(volume, KEY)
    where = prepared(guest, target)
    source.live_migrate(guest.spec(), where, LiveOptions(), no_word)
    source.destroy(guest.uuid, guest.vifs, guest.volumes, destroy_disks=True)
    assert secrets_of(guest) == []
    guest.driver = target
    guest.driver.hold_volume_key(volume, KEY)
    guest.driver.reboot(guest.spec(), hard=True, timeout=0)
    again = guest.wait(lambda said: "disk=vdb lines=2" in said.text).last("CAUSEWAY-MARKER", disk="vdb")
    assert again == {"disk": "vdb", "first": first, "lines": "2"}
