"""Guests in a real Ceph that were killed, or are locked out."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from causeway import errors
from causeway.model.shared_disk import StoredDisk
from tests.integration.real_services.rbd_site import RbdSite, await_that
from tests.shared_stores import AFTER, BEFORE

pytestmark = pytest.mark.timeout(300)
MIB = 2**20
OTHER = b"other!" * 512


def test_a_disk_of_a_guest_that_was_killed_is_removed_once_ceph_notices(bound: RbdSite) -> None:
    """Bugs 1856845, 1438331: Ceph waits for the guest for half a minute."""
    bound.make("disk", BEFORE)
    with bound.guest("disk") as guest:
        assert guest.write(AFTER)
        guest.kill()
        with pytest.raises(errors.GuestFailed, match="in use"):
            bound.store.remove("disk")
        bound.host(busy_timeout=90).remove("disk")
    assert bound.store.names() == []


def test_a_frozen_guest_that_is_fenced_can_t_write_after_the_next_one(bound: RbdSite) -> None:
    bound.make("disk", BEFORE)
    with bound.guest("disk") as first:
        assert first.write(AFTER)
        (user,) = bound.store.users("disk")
        first.freeze()
        bound.store.fence([user])
        # Ceph itself would do so only after half a minute, when the next one writes.
        assert (bound.store.users("disk"), user in bound.blocklist()) == ([], True)
        with bound.guest("disk") as next_one:
            assert next_one.write(OTHER)
        first.thaw()
        assert not first.write(BEFORE)
    assert bound.content("disk") == OTHER


def test_a_guest_that_ceph_no_longer_knows_of_can_t_write_after_the_next_one(bound: RbdSite) -> None:
    """As one whose host was cut off for a minute: it is in no list of users, so nobody fences it."""
    bound.make("disk", BEFORE)
    with bound.guest("disk") as first:
        assert first.write(AFTER)
        first.freeze()
        await_that(lambda: not bound.store.users("disk"))
        with bound.guest("disk") as next_one:
            assert next_one.write(OTHER)
            first.thaw()
            assert not first.write(BEFORE)
    assert bound.content("disk") == OTHER


def test_users_are_named_as_ceph_s_blocklist_takes_them(site: RbdSite) -> None:
    site.make("disk", BEFORE)
    with site.guest("disk") as guest:
        assert guest.write(AFTER)
        (user,) = site.store.users("disk")
        assert re.fullmatch(r"127\.0\.0\.1:0/\d+", user)
        for _ in range(2):
            site.store.fence([user])
        assert user in site.blocklist()


def test_a_host_that_another_one_locks_out_in_the_middle_of_a_change_says_so(bound: RbdSite) -> None:
    bound.make("disk", BEFORE)
    other = bound.host()
    with bound.guest("disk") as guest, ThreadPoolExecutor(1) as threads:
        assert guest.write(AFTER)
        (user,) = other.users("disk")
        # Ceph has the guest make the snapshot, for the host.
        guest.freeze()
        change = threads.submit(bound.store.make_snapshot, "disk", "label")
        await_that(lambda: len(other.users("disk")) == 2)
        other.fence([each for each in other.users("disk") if each != user])
        guest.thaw()
        with pytest.raises(errors.StorageUnreachable, match="locked this host out"):
            change.result(120)
    # Its next worker is another client.
    bound.store.make_snapshot("disk", "label")


def test_a_disk_in_use_is_not_rolled_back_and_one_of_a_fenced_guest_is_at_once(site: RbdSite) -> None:
    site.make("disk", BEFORE)
    site.store.make_snapshot("disk", "label")
    with site.guest("disk") as guest:
        assert guest.write(AFTER)
        with pytest.raises(errors.GuestFailed, match="in use"):
            site.store.roll_back("disk", "label")
        assert site.content("disk") == AFTER
        guest.kill()
        with pytest.raises(errors.GuestFailed, match="in use"):
            site.store.roll_back("disk", "label")
        site.store.fence(site.store.users("disk"))
        site.store.roll_back("disk", "label")
    assert site.content("disk") == BEFORE


def test_a_disk_of_a_guest_that_was_killed_can_be_changed_once_ceph_notices(bound: RbdSite) -> None:
    bound.make("disk", BEFORE)
    with bound.guest("disk") as guest:
        assert guest.write(AFTER)
        guest.kill()
        with ThreadPoolExecutor(3) as threads:
            changes = [
                threads.submit(bound.store.set_owner, "disk", "a 1"),
                threads.submit(bound.store.make_snapshot, "disk", "label"),
                threads.submit(bound.store.grow, "disk", 8 * MIB),
            ]
            for change in changes:
                change.result(120)
    assert bound.store.find("disk") == StoredDisk("disk", 8 * MIB, "a 1", ("label",))
