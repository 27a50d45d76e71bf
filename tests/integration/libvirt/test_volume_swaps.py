"""A real guest continues on another volume while it writes to the one that it has."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from causeway.errors import GuestFailed
from causeway.model.block_device import BlockDevice
from causeway.model.states import PowerState
from causeway.virt.libvirt import power
from tests.integration.libvirt.lab_guests import Cloud, Guest, image_lines


def domain(guest: Guest) -> Any:
    return guest.driver._connection.call("find it", lambda hypervisor: power.find(hypervisor, guest.uuid))


def with_volumes(cloud: Cloud) -> tuple[Guest, BlockDevice, BlockDevice]:
    """A guest that runs with a volume, and another volume for the same place in it."""
    guest = cloud.guest()
    old = cloud.volume(guest)
    guest.volumes.append(old)
    guest.spawn()
    return guest, old, cloud.volume(guest)


def nothing(_done: int, _total: int) -> None:
    pass


def uses(guest: Guest) -> str:
    """The file of vdb in the guest that runs, and in what it is started with next."""
    files = {
        xml.split("<target dev='vdb'")[0].rsplit("file='", 1)[1].split("'")[0]
        for xml in (domain(guest).XMLDesc(), domain(guest).XMLDesc(2))
    }
    (found,) = files
    return found


def test_a_guest_continues_on_the_copy(cloud: Cloud) -> None:
    guest, old, new = with_volumes(cloud)
    driver, before = guest.driver, image_lines(cloud.path_of(old))
    assert before
    done: list[tuple[int, int]] = []
    driver.copy_volume(guest.uuid, old, new, lambda *counts: done.append(counts))
    assert done
    assert done[-1][0] == done[-1][1] > 0
    # Both have it all until the switch; repeated it joins what is there.
    driver.copy_volume(guest.uuid, old, new, nothing)
    assert image_lines(cloud.path_of(new)) == before
    assert driver.switch_volume(guest.uuid, old, new)
    assert driver.switch_volume(guest.uuid, old, new)
    assert uses(guest) == str(cloud.path_of(new))
    driver.end_volume_swap(guest.uuid, old, new, keep_new=True)
    driver.end_volume_swap(guest.uuid, old, new, keep_new=True)
    with pytest.raises(GuestFailed, match="stays connected"):
        driver.end_volume_swap(guest.uuid, old, new, keep_new=False)
    assert list(driver._disks.directory.glob("switch-*")) == []

    guest.volumes[0] = replace(new, volume_id=old.volume_id)
    driver.reboot(guest.spec(), hard=True, timeout=0)
    guest.wait_for_boot(2)
    lines = image_lines(cloud.path_of(new))
    assert lines[: len(before)] == before
    assert len(lines) > len(before)
    assert image_lines(cloud.path_of(old)) == before


def test_a_larger_volume_is_seen_from_the_next_start_on(cloud: Cloud) -> None:
    guest, old, new = with_volumes(cloud)
    os.truncate(cloud.path_of(new), 2**30)
    guest.driver.copy_volume(guest.uuid, old, new, nothing)
    assert guest.driver.switch_volume(guest.uuid, old, new)
    assert domain(guest).blockInfo("vdb")[0] == 64 * 2**20
    guest.volumes[0] = replace(new, volume_id=old.volume_id)
    guest.driver.reboot(guest.spec(), hard=True, timeout=0)
    assert domain(guest).blockInfo("vdb")[0] == 2**30


def test_a_smaller_volume_is_refused(cloud: Cloud) -> None:
    guest, old, new = with_volumes(cloud)
    os.truncate(cloud.path_of(new), 2**20)
    with pytest.raises(GuestFailed, match="too small"):
        guest.driver.copy_volume(guest.uuid, old, new, nothing)


def test_a_copy_that_is_abandoned_leaves_the_guest_as_it_was(cloud: Cloud) -> None:
    guest, old, new = with_volumes(cloud)

    def unwanted(_done: int, _total: int) -> None:
        raise RuntimeError("nobody wants it any more")

    with pytest.raises(RuntimeError):
        guest.driver.copy_volume(guest.uuid, old, new, unwanted)
    assert uses(guest) == str(cloud.path_of(old))
    assert "mirror" not in domain(guest).XMLDesc()
    assert not guest.driver.switch_volume(guest.uuid, old, new)
    guest.driver.copy_volume(guest.uuid, old, new, nothing)
    guest.driver.end_volume_swap(guest.uuid, old, new, keep_new=False)
    assert "mirror" not in domain(guest).XMLDesc()
    assert uses(guest) == str(cloud.path_of(old))


def test_a_guest_that_is_off_is_not_swapped(cloud: Cloud) -> None:
    guest, old, new = with_volumes(cloud)
    guest.driver.power_off(guest.uuid, 0)
    with pytest.raises(GuestFailed, match="does not run"):
        guest.driver.copy_volume(guest.uuid, old, new, nothing)


@pytest.mark.parametrize("switched", [False, True])
def test_qemu_is_killed(cloud: Cloud, switched: bool) -> None:
    """Before the switch the old volume is the one; behind it the new one is, whatever the definition says."""
    guest, old, new = with_volumes(cloud)
    driver = guest.driver
    driver.copy_volume(guest.uuid, old, new, nothing)
    if switched:
        assert driver.switch_volume(guest.uuid, old, new)
    with driver._connection.events.stopped(guest.uuid) as stopped:
        os.kill(pid_of(guest), signal.SIGKILL)
        assert stopped.wait(30)
    assert driver.inspect(guest.uuid).power_state == PowerState.SHUTDOWN or not domain(guest).isActive()
    assert driver.switch_volume(guest.uuid, old, new) is switched
    driver.end_volume_swap(guest.uuid, old, new, keep_new=switched)


def test_a_switch_whose_new_definition_was_lost_is_found_again(cloud: Cloud) -> None:
    """The host died between QEMU's switch and the definition: what was noted before it decides."""
    guest, old, new = with_volumes(cloud)
    driver, definition = guest.driver, domain(guest).XMLDesc(2)
    driver.copy_volume(guest.uuid, old, new, nothing)
    assert driver.switch_volume(guest.uuid, old, new)
    driver.power_off(guest.uuid, 0)
    driver._connection.call("put it back", lambda hypervisor: hypervisor.defineXML(definition))
    assert driver.switch_volume(guest.uuid, old, new)


def pid_of(guest: Guest) -> int:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().decode(errors="replace")
        except OSError:
            continue
        if "qemu-system" in line and guest.uuid in line:
            return int(path.parent.name)
    raise AssertionError(f"no QEMU of guest {guest.uuid}")
