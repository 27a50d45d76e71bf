"""Guests with recorded names on real hypervisors, and two guests whose records have the same name."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from causeway.errors import ClaimRefused
from causeway.model.states import PowerState
from causeway.virt.driver import ROOT_DISK, RootDisk
from causeway.virt.live_guest import LiveOptions, Presence
from tests.integration.libvirt.lab_guests import Cloud, Guest
from tests.integration.libvirt.lab_journeys import no_word, prepared

if TYPE_CHECKING:
    from causeway.virt.libvirt.driver import LibvirtDriver

NOVAS = "instance-0000002a"


def named(cloud: Cloud, *, host: int = 0) -> Guest:
    guest = cloud.guest(host=host)
    guest.instance = replace(guest.instance, guest_name=NOVAS)
    return guest


def names(driver: LibvirtDriver, *guests: Guest) -> list[str | None]:
    return [driver.guest_name(guest.uuid) for guest in guests]


def test_a_guest_has_its_recorded_name_after_each_start_and_at_the_target_of_its_live_migration(cloud: Cloud) -> None:
    source, target = cloud.drivers
    guest = named(cloud)
    guest.spawn()
    assert names(source, guest) == [NOVAS]
    source.reboot(guest.spec(), hard=True, timeout=0)
    guest.wait_for_boot(2)
    # A start here anew, as after a revert.
    source.destroy(guest.uuid, [], [], destroy_disks=False)
    source.spawn(guest.spec())
    assert names(source, guest) == [NOVAS]
    where = prepared(guest, target)
    source.live_migrate(guest.spec(), where, LiveOptions(), no_word)
    guest.driver = target
    assert (names(source, guest), names(target, guest)) == ([None], [NOVAS])


def test_of_two_guests_with_one_recorded_name_the_second_gets_the_computed_one(cloud: Cloud) -> None:
    source, _ = cloud.drivers
    first, second = named(cloud), named(cloud)
    first.spawn()
    second.spawn()
    assert names(source, first, second) == [NOVAS, f"instance-{second.uuid}"]
    # The name is free now, and a guest that exists keeps its own.
    source.destroy(first.uuid, [], [], destroy_disks=True)
    source.reboot(second.spec(), hard=True, timeout=0)
    assert names(source, first, second) == [None, f"instance-{second.uuid}"]


def test_a_guest_that_comes_live_to_where_another_one_has_its_name_gets_the_computed_one(cloud: Cloud) -> None:
    source, target = cloud.drivers
    mine, other = named(cloud), named(cloud, host=1)
    for each in (mine, other):
        each.spawn()
        each.wait_for_boot()
    where = prepared(mine, target)
    source.live_migrate(mine.spec(), where, LiveOptions(), no_word)
    mine.driver = target
    computed = f"instance-{mine.uuid}"
    assert (names(source, mine), names(target, mine, other)) == ([None], [computed, NOVAS])
    assert target.presence(mine.uuid) is Presence.RUNNING
    assert (mine.console().boots, other.console().boots) == (0, 1)
    # What libvirt has defined for its next start has the name as well.
    target.reboot(mine.spec(), hard=True, timeout=0)
    mine.wait_for_boot()
    assert names(target, mine, other) == [computed, NOVAS]


def test_a_guest_that_was_saved_wakes_with_the_computed_name_where_another_one_has_its_name(
    cloud: Cloud, tmp_path: Path
) -> None:
    source, target = cloud.drivers
    mine, other = named(cloud), named(cloud, host=1)
    for each in (mine, other):
        each.spawn()
        each.wait_for_boot()
    target.check_can_wake(source.live_source(mine.instance))
    source.save_memory(mine.uuid)
    memory = source.saved_memory(mine.uuid)
    assert memory is not None
    received = Path(shutil.copy(memory, tmp_path / "memory"))
    with source.export_disk(mine.instance, ROOT_DISK, flatten=False) as export:
        disk = Path(shutil.copy(export.path, tmp_path / "disk"))
    source.destroy(mine.uuid, [], [], destroy_disks=True)

    root = RootDisk(mine.base, "the-image", snapshot=disk, snapshot_format=export.disk_format, size_gb=1)
    spec = mine.spec(root)
    spec.memory = received
    target.wake(spec)
    target.resume_woken(mine.uuid, is_paused=False)
    assert names(target, mine, other) == [f"instance-{mine.uuid}", NOVAS]
    assert target.inspect(mine.uuid).power_state is PowerState.RUNNING
    assert other.console().boots == 1
    # The definition for its next start has the name as well.
    target.reboot(mine.spec(), hard=True, timeout=0)
    assert names(target, mine, other) == [f"instance-{mine.uuid}", NOVAS]


def test_a_guest_of_a_host_that_keeps_names_does_not_come_live_to_where_another_one_has_its_name(cloud: Cloud) -> None:
    source, target = cloud.drivers
    mine, other = named(cloud), named(cloud, host=1)
    mine.spawn()
    other.spawn()
    said = source.live_source(mine.instance)
    del said.details["renames"]
    with pytest.raises(ClaimRefused, match="Another guest of the host has the name"):
        target.check_live_target(said)
    target.check_can_wake(said)
