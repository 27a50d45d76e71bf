"""A pool of a real Ceph as a store of disks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from causeway import errors
from causeway.virt.libvirt.storage.rbd.images import RbdImages
from causeway.virt.libvirt.storage.rbd.protocol import Parent
from tests.integration.real_services.rbd_site import POOL, RbdSite, image_file
from tests.shared_stores import AFTER, BEFORE, SharedStoreContract

pytestmark = pytest.mark.timeout(300)
MIB = 2**20
OTHER = b"other!" * 512
IMAGE = "0b5c2f3e-6d5b-4a52-8f5a-3d2c1b0a9f8e"


class TestRbdStore(SharedStoreContract):
    """Every statement there holds."""


def test_the_store_is_named_after_the_cluster_and_the_pool(site: RbdSite) -> None:
    assert site.store.id == f"rbd:{site.ceph.fsid}/{POOL}"
    assert site.host().id == site.store.id


def test_a_blank_disk_has_its_size_and_only_grows(site: RbdSite) -> None:
    for _ in range(2):
        site.store.create("disk", 4 * MIB)
        assert site.store.find("disk").size == 4 * MIB  # type: ignore[union-attr]
    with pytest.raises(errors.GuestFailed, match="exists already"):
        site.store.create("disk", 8 * MIB)
    for size in (8 * MIB, 8 * MIB, 2 * MIB):
        site.store.grow("disk", size)
        assert site.store.find("disk").size == 8 * MIB  # type: ignore[union-attr]
    assert site.content("disk") == bytes(8 * MIB)
    acts: tuple[Callable[[], object], ...] = (
        lambda: site.store.grow("none", 1),
        lambda: site.store.flatten("none"),
    )
    for act in acts:
        with pytest.raises(errors.GuestFailed, match="not in shared storage"):
            act()


def test_a_clone_is_nobody_s_until_it_gets_an_owner(site: RbdSite) -> None:
    """Ceph gives a clone its parent's metadata."""
    site.make("disk", BEFORE)
    site.store.set_owner("disk", "a 1")
    site.store.make_snapshot("disk", "label")
    site.store.clone("disk", "label", "clone")
    assert site.store.find("clone").owner is None  # type: ignore[union-attr]
    site.store.set_owner("clone", "b 1")
    assert site.store.find("clone").owner == "b 1"  # type: ignore[union-attr]
    assert site.store.find("disk").owner == "a 1"  # type: ignore[union-attr]


def test_a_disk_stands_on_an_image_of_another_pool(site: RbdSite) -> None:
    site.run("rbd", "create", "--size", "4M", "images/glance")
    try:
        site.run("rbd", "snap", "create", "--no-progress", "images/glance@snap")
        for _ in range(2):
            site.store.clone_from_other_pool("images", "glance", "snap", "disk")
        assert site.store.existing("disk").parent == Parent("images", "glance", "snap")
        site.store.remove("disk")
    finally:
        site.run("rbd", "snap", "purge", "--no-progress", "images/glance")
        site.run("rbd", "rm", "--no-progress", "images/glance")


def test_what_has_changed_between_two_snapshots_is_named_in_whole_blocks(site: RbdSite, tmp_path: Path) -> None:
    file, content = image_file(tmp_path, "raw")
    base = RbdImages(site.store, 60).import_base(IMAGE, file, "raw")
    site.store.clone(base, "snap", "disk")
    site.store.grow("disk", 64 * MIB)
    site.store.make_snapshot("disk", "one")
    with site.guest("disk") as guest:
        assert guest.write(OTHER, 20 * MIB + 7)
        assert guest.write(OTHER, 40 * MIB)
        site.store.make_snapshot("disk", "two")
        guest.discard(20 * MIB, MIB)
    block = 65536
    assert site.store.changes("disk", "one", "two") == [(20 * MIB, block), (40 * MIB, block)]
    (discarded,) = site.store.changes("disk", "two", None) or []
    assert discarded[0] == 20 * MIB and block <= discarded[1] <= MIB
    # All of it has what it stands on.
    whole = site.store.changes("disk", None, "one") or []
    assert whole[0][0] == 0 and sum(length for _offset, length in whole) >= 4096
    assert all(offset + length <= len(content) + 4 * MIB for offset, length in whole)
    for since, until in (("none", None), (None, "none")):
        assert site.store.changes("disk", since, until) is None
    with pytest.raises(errors.GuestFailed, match="not accepted"):
        site.store.changes("disk", "--image", None)


def test_a_disk_that_others_stand_on_goes_to_the_trash(site: RbdSite) -> None:
    for protected in (False, True):
        site.make("disk", BEFORE)
        site.store.make_snapshot("disk", "label")
        if protected:
            site.run("rbd", "snap", "protect", f"{POOL}/disk@label")
        site.store.clone("disk", "label", "clone")
        for _ in range(2):
            site.store.remove("disk")
        assert site.store.names() == ["clone"]
        assert site.trash() == ["disk"]
        assert site.content("clone") == BEFORE
        site.store.flatten("clone")
        if protected:
            # Nothing of it is deleted without a look at what stands on it.
            site.store.remove("clone")
            break
        site.run("rbd", "trash", "purge", "--no-progress", POOL)
        assert site.trash() == []
        assert site.content("clone") == BEFORE
        site.store.remove("clone")


def test_a_disk_with_a_protected_snapshot_is_removed(site: RbdSite) -> None:
    site.make("disk", BEFORE)
    site.store.make_snapshot("disk", "label")
    site.run("rbd", "snap", "protect", f"{POOL}/disk@label")
    site.store.remove("disk")
    assert (site.store.names(), site.trash()) == ([], [])


def test_a_disk_in_use_that_others_stand_on_does_not_go_to_the_trash(bound: RbdSite) -> None:
    bound.make("disk", BEFORE)
    bound.store.make_snapshot("disk", "label")
    bound.store.clone("disk", "label", "clone")
    with bound.guest("disk") as guest:
        assert guest.write(AFTER)
        with pytest.raises(errors.GuestFailed, match="in use"):
            bound.store.remove("disk")
        assert bound.trash() == []
        assert bound.store.find("disk").snapshots == ("label",)  # type: ignore[union-attr]


@pytest.mark.parametrize("lacks", ["header", "name"])
def test_a_disk_that_was_made_half_way_is_removed_and_made_anew(bound: RbdSite, lacks: str) -> None:
    bound.make("disk", BEFORE)
    image = bound.store.existing("disk")
    lost = f"rbd_header.{image.id}" if lacks == "header" else "rbd_id.disk"
    bound.run("rados", "-p", POOL, "rm", lost)
    assert bound.store.find("disk") is None
    assert bound.store.names() == ["disk"]
    bound.store.create("disk", 4 * MIB)
    assert bound.store.find("disk").size == 4 * MIB  # type: ignore[union-attr]
    bound.store.remove("disk")
    assert bound.store.names() == []


@pytest.mark.parametrize("name", ["", "-x", "a/b", "a@b", "a:id=admin", "a b", "x" * 300])
def test_a_name_that_would_be_more_than_a_name_is_refused(bound: RbdSite, name: str) -> None:
    for act in (bound.store.find, bound.store.remove, partial(bound.store.set_owner, owner="a 1")):
        with pytest.raises(errors.GuestFailed, match="not accepted"):
            act(name)


def test_the_monitors_are_those_of_now(site: RbdSite) -> None:
    assert site.store.monitors() == [f"{address}:{port}" for address, port in site.ceph.monitors]


def test_used_and_total_bytes_are_the_pool_s(site: RbdSite) -> None:
    used, total = site.store.used_and_total()
    assert 0 <= used < total <= site.ceph.size_gib * 2**30
