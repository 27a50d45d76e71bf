"""Guests with recorded names on real hypervisors, and two guests whose records have the same name."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from causeway.errors import ClaimRefused, GuestFailed
from causeway.model.states import PowerState
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


def test_a_guest_with_its_memory_does_not_come_to_where_another_guest_has_its_name(cloud: Cloud) -> None:
    source, target = cloud.drivers
    mine, other = named(cloud), named(cloud, host=1)
    mine.spawn()
    said = source.live_source(mine.instance)
    # The other guest comes between the question and the migration.
    target.check_live_target(said)
    where = target.prepare_live_target(mine.spec(mine.new_disk()), said)
    other.spawn()
    with pytest.raises(GuestFailed):
        source.live_migrate(mine.spec(), where, LiveOptions(), no_word)
    assert source.presence(mine.uuid) is Presence.RUNNING
    with pytest.raises(ClaimRefused, match="Another guest of the host has the name"):
        target.check_live_target(said)
    with pytest.raises(ClaimRefused, match="Another guest of the host has the name"):
        target.check_can_wake(said)
    assert target.inspect(other.uuid).power_state is PowerState.RUNNING
    assert names(target, mine, other) == [None, NOVAS]
    assert other.console().boots == 1
