"""What every `SharedStore` does, as tests of a class that a store's own tests derive from, and the life of a disk on it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

import pytest

from causeway.errors import DiskTransferFailed, GuestFailed
from causeway.model.shared_disk import StoredDisk
from causeway.virt.shared_disks.ownership import SharedDisks
from causeway.virt.shared_disks.store import SharedStore

KIB = 1024
BEFORE, AFTER, LARGER = b"before" * 512, b"after!" * 512, b"larger" * 1024
UUID = "5f5b6a3e-8b0e-4a36-9c39-1f6d2f4a9d11"


class Guest(Protocol):
    """Somebody who has a disk open."""

    def write(self, content: bytes) -> bool:
        """Whether it was written."""
        ...

    def kill(self) -> None:
        """Ends it at once."""
        ...


class StoreSite(Protocol):
    """A store, and what hosts and guests do with its disks."""

    store: SharedStore

    def make(self, name: str, content: bytes) -> None:
        """Makes a disk, which has the size of its content."""
        ...

    def write(self, name: str, content: bytes) -> None:
        """Gives a disk another content, and a size that is no smaller."""
        ...

    def content(self, name: str) -> bytes: ...

    def guest(self, name: str) -> AbstractContextManager[Guest]:
        """A guest that has written to the disk, and has it open."""
        ...


class SharedStoreContract:
    """``site``: a store without disks."""

    def test_a_disk_is_described_with_size_owner_and_snapshots(self, site: StoreSite) -> None:
        assert site.store.find("disk") is None
        site.make("disk", BEFORE)
        assert site.store.find("disk") == StoredDisk("disk", len(BEFORE))
        site.store.set_owner("disk", "host 1 7")
        site.store.make_snapshot("disk", "stash-b-2")
        site.store.make_snapshot("disk", "stash-a-1")
        assert site.store.find("disk") == StoredDisk("disk", len(BEFORE), "host 1 7", ("stash-a-1", "stash-b-2"))

    def test_the_store_s_id_stays_and_all_disks_are_listed(self, site: StoreSite) -> None:
        assert site.store.names() == []
        for name in ("b", "a", f"{UUID}_disk"):
            site.make(name, BEFORE)
        assert site.store.names() == [f"{UUID}_disk", "a", "b"]
        assert site.store.id == site.store.id

    def test_an_owner_replaces_the_one_before(self, site: StoreSite) -> None:
        site.make("disk", BEFORE)
        for owner in ("a 1", "b 2", "b 2"):
            site.store.set_owner("disk", owner)
            assert _found(site, "disk").owner == owner

    def test_a_snapshot_keeps_what_was_there_when_it_was_first_made(self, site: StoreSite) -> None:
        site.make("disk", BEFORE)
        site.store.make_snapshot("disk", "label")
        site.write("disk", AFTER)
        site.store.make_snapshot("disk", "label")
        site.store.roll_back("disk", "label")
        assert site.content("disk") == BEFORE

    def test_a_disk_that_is_rolled_back_has_its_former_content_and_size(self, site: StoreSite) -> None:
        site.make("disk", BEFORE)
        site.store.set_owner("disk", "a 1")
        site.store.make_snapshot("disk", "label")
        site.store.set_owner("disk", "b 2")
        for _ in range(2):
            site.write("disk", LARGER)
            assert _found(site, "disk").size == len(LARGER)
            site.store.roll_back("disk", "label")
            site.store.roll_back("disk", "label")
            assert site.content("disk") == BEFORE
            assert site.store.find("disk") == StoredDisk("disk", len(BEFORE), "b 2", ("label",)), "the owner stays"

    def test_a_snapshot_that_is_deleted_leaves_the_disk_as_it_is(self, site: StoreSite) -> None:
        site.make("disk", BEFORE)
        site.store.make_snapshot("disk", "label")
        site.write("disk", AFTER)
        for name, label in (("disk", "label"), ("disk", "label"), ("disk", "other"), ("no-disk", "label")):
            site.store.delete_snapshot(name, label)
        assert site.store.find("disk") == StoredDisk("disk", len(AFTER))
        assert site.content("disk") == AFTER
        with pytest.raises(GuestFailed):
            site.store.roll_back("disk", "label")

    def test_a_disk_is_renamed_with_its_owner(self, site: StoreSite) -> None:
        site.make("disk.partial", BEFORE)
        site.store.set_owner("disk.partial", "a 1")
        for _ in range(2):
            site.store.rename("disk.partial", "disk")
            assert site.store.find("disk") == StoredDisk("disk", len(BEFORE), "a 1")
            assert site.store.names() == ["disk"]
        assert site.content("disk") == BEFORE

    def test_a_disk_is_removed_with_its_snapshots(self, site: StoreSite) -> None:
        site.make("disk", BEFORE)
        site.make("other", BEFORE)
        for label in ("one", "two"):
            site.store.make_snapshot("disk", label)
        for _ in range(2):
            site.store.remove("disk")
            assert site.store.find("disk") is None
        assert site.store.names() == ["other"]
        site.make("disk", AFTER)
        assert site.store.find("disk") == StoredDisk("disk", len(AFTER)), "it has neither snapshots nor an owner"

    @pytest.mark.parametrize(
        "act",
        [
            lambda store: store.set_owner("disk", "a 1"),
            lambda store: store.make_snapshot("disk", "label"),
            lambda store: store.roll_back("disk", "label"),
        ],
        ids=["set_owner", "make_snapshot", "roll_back"],
    )
    def test_a_call_for_a_disk_that_is_missing_is_refused(
        self, site: StoreSite, act: Callable[[SharedStore], Any]
    ) -> None:
        with pytest.raises(GuestFailed, match="Disk disk is not in shared storage"):
            act(site.store)
        assert site.store.names() == []

    def test_a_disk_names_who_has_it_open_and_is_not_removed_meanwhile(self, site: StoreSite) -> None:
        site.make("disk", BEFORE)
        assert site.store.users("disk") == []
        with site.guest("disk") as guest:
            (user,) = site.store.users("disk")
            stored = site.store.find("disk")
            assert stored is not None and stored.users == (user,)
            with pytest.raises(GuestFailed, match="in use") as failure:
                site.store.remove("disk")
            assert user in failure.value.details
            assert guest.write(AFTER)
        assert site.store.users("disk") == []
        assert site.content("disk") == AFTER
        site.store.remove("disk")
        assert site.store.names() == []

    def test_a_disk_that_a_guest_has_open_gets_an_owner_and_a_snapshot(self, site: StoreSite) -> None:
        """As when its guest has arrived live."""
        site.make("disk", BEFORE)
        with site.guest("disk") as guest:
            assert guest.write(AFTER)
            for _ in range(2):
                site.store.set_owner("disk", "b 2")
                site.store.make_snapshot("disk", "label")
            assert guest.write(BEFORE)
            assert len(site.store.users("disk")) == 1
        assert site.store.find("disk") == StoredDisk("disk", len(BEFORE), "b 2", ("label",))
        site.store.roll_back("disk", "label")
        assert site.content("disk") == AFTER

    def test_whoever_is_fenced_can_t_write_any_more(self, site: StoreSite) -> None:
        site.make("disk", BEFORE)
        with site.guest("disk") as guest:
            assert guest.write(AFTER)
            users = site.store.users("disk")
            for _ in range(2):
                site.store.fence(users)
            site.write("disk", LARGER)
            assert not guest.write(BEFORE)
        assert site.content("disk") == LARGER
        site.store.fence([])

    # the life of a disk: the table of `causeway.virt.shared_disks.ownership`

    @pytest.mark.parametrize("end", ["confirm", "revert"])
    def test_a_move_goes_through_the_life_of_a_disk(self, site: StoreSite, tmp_path: Path, end: str) -> None:
        a, b = SharedDisks(site.store, "a"), SharedDisks(site.store, "b")
        at_a, at_b = tmp_path / "a" / UUID, tmp_path / "b" / UUID
        name = a.make(at_a, "disk", lambda name: site.make(name, BEFORE))
        assert a.make(at_a, "disk", lambda name: site.make(name, AFTER)) == name
        assert _state(site, name) == ("a 1", (), BEFORE)
        offered = a.offered(at_a)["disk"]
        with pytest.raises(DiskTransferFailed):
            b.take(at_b, "disk", offered)
        for _ in range(2):
            a.put_aside(at_a)
        assert _state(site, name) == ("a 1", ("stash-a-1",), BEFORE)
        b.take(at_b, "disk", offered)
        b.require_owned(at_b)
        assert _state(site, name) == ("b 2", ("stash-a-1",), BEFORE)
        site.write(name, LARGER)
        if end == "confirm":
            for _ in range(2):
                a.release_stashed(at_a)
            assert _state(site, name) == ("b 2", (), LARGER)
            a.release(at_a)
            assert _state(site, name) == ("b 2", (), LARGER)
            b.release(at_b)
        else:
            b.release(at_b)
            assert _state(site, name) == ("- 2", ("stash-a-1",), LARGER)
            for _ in range(2):
                a.put_back(at_a)
            assert _state(site, name) == ("a 3", (), BEFORE)
            a.require_owned(at_a)
            a.release(at_a)
        assert site.store.names() == []

    @pytest.mark.parametrize("end", ["settle", "fail"])
    def test_a_disk_of_a_dead_host_is_taken_over_and_its_guest_can_t_write(
        self, site: StoreSite, tmp_path: Path, end: str
    ) -> None:
        a, b = SharedDisks(site.store, "a"), SharedDisks(site.store, "b")
        at_a, at_b = tmp_path / "a" / UUID, tmp_path / "b" / UUID
        name = a.make(at_a, "disk", lambda name: site.make(name, BEFORE))
        with site.guest(name) as guest:
            assert guest.write(AFTER)
            for _ in range(2):
                assert b.take_over(at_b, "disk", "a")
            assert not guest.write(BEFORE)
            site.write(name, LARGER)
            assert not guest.write(BEFORE)
        assert _state(site, name) == ("b 2 after a 1", (), LARGER)
        b.require_owned(at_b)
        if end == "settle":
            for _ in range(2):
                b.settle(at_b)
            a.release(at_a)
            assert _state(site, name) == ("b 2", (), LARGER)
            b.release(at_b)
        else:
            b.release(at_b)
            assert _state(site, name) == ("a 1", (), LARGER)
            a.require_owned(at_a)
            a.release(at_a)
        assert site.store.names() == []


def _found(site: StoreSite, name: str) -> StoredDisk:
    found = site.store.find(name)
    assert found is not None
    return found


def _state(site: StoreSite, name: str) -> tuple[str | None, tuple[str, ...], bytes]:
    found = _found(site, name)
    return found.owner, found.snapshots, site.content(name)
