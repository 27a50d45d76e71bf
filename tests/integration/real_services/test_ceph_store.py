"""A pool of a real Ceph as a store of disks, with a Ceph that does not answer, and with hosts that die."""

from __future__ import annotations

import re
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from causeway import errors
from causeway.model.shared_disk import StoredDisk
from causeway.virt.driver import StoredImage
from causeway.virt.libvirt.storage import qemu_img
from causeway.virt.libvirt.storage.rbd.images import RbdImages
from causeway.virt.libvirt.storage.rbd.protocol import Names, Parent
from causeway.virt.libvirt.storage.rbd.store import RbdStore
from tests.integration.real_services.ceph import Ceph, missing
from tests.integration.real_services.rbd_site import POOL, RbdSite
from tests.shared_stores import AFTER, BEFORE, LARGER, SharedStoreContract

pytestmark = pytest.mark.timeout(300)
MIB = 2**20
OTHER = b"other!" * 512
IMAGE = "0b5c2f3e-6d5b-4a52-8f5a-3d2c1b0a9f8e"


@pytest.fixture(scope="module")
def ceph() -> Iterator[Ceph]:
    reason = missing()
    if reason is not None:
        pytest.skip(reason)
    with tempfile.TemporaryDirectory(prefix="causeway-ceph-", ignore_cleanup_errors=True) as folder:
        ceph = Ceph(Path(folder), "127.0.0.1")
        try:
            ceph.start()
            yield ceph
        finally:
            ceph.stop()


@pytest.fixture(params=["bindings", "programs"])
def site(request: pytest.FixtureRequest, ceph: Ceph) -> Iterator[RbdSite]:
    with _site(ceph, programs=request.param == "programs") as site:
        yield site


@pytest.fixture
def bound(ceph: Ceph) -> Iterator[RbdSite]:
    """For what does not depend on bindings or programs."""
    with _site(ceph, programs=False) as site:
        yield site


@contextmanager
def _site(ceph: Ceph, *, programs: bool) -> Iterator[RbdSite]:
    """Without disks before and after."""
    site = RbdSite(ceph, programs=programs)
    _clean(site)
    yield site
    _clean(site)
    site.close()


def _clean(site: RbdSite) -> None:
    store = site.host(busy_timeout=60)
    names: list[str] = store.client.ask(Names(), list[str])
    for name in names:
        store.remove(name)
    # Clones come before what they stand on.
    while site.trash():
        site.run("rbd", "trash", "purge", "--no-progress", POOL)


class TestRbdStore(SharedStoreContract):
    """Every statement there holds."""


def test_the_store_is_named_after_the_cluster_and_the_pool(site: RbdSite) -> None:
    assert site.store.id == f"rbd:{site.ceph.fsid}/{POOL}"
    assert site.host().id == site.store.id


# what root disks need


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
        lambda: site.store.parent("none"),
    )
    for act in acts:
        with pytest.raises(errors.GuestFailed, match="not in shared storage"):
            act()


@pytest.mark.parametrize("disk_format", ["raw", "qcow2"])
def test_a_disk_stands_on_a_base_image_with_raw_bytes_until_it_is_flattened(
    site: RbdSite, tmp_path: Path, disk_format: str
) -> None:
    """Bug 1816686."""
    file, content = _image(tmp_path, disk_format)
    images = RbdImages(site.store, 60)
    assert not images.has_base(IMAGE)
    for _ in range(2):
        base = images.import_base(IMAGE, file, disk_format)
        assert images.has_base(IMAGE)
    assert site.content(base) == content
    for _ in range(2):
        site.store.clone(base, "snap", "disk")
        assert site.store.parent("disk") == Parent(POOL, base, "snap")
    site.store.grow("disk", 8 * MIB)
    site.write("disk", AFTER)
    expected = AFTER + content[len(AFTER) :] + bytes(8 * MIB - len(content))
    for _ in range(2):
        site.store.flatten("disk")
        assert site.store.parent("disk") is None
    assert site.content("disk") == expected
    assert site.content(base) == content
    assert site.store.names() == ["disk"], "base images are no disks"
    with pytest.raises(errors.GuestFailed):
        site.store.clone("no-base", "snap", "other")


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
        assert site.store.parent("disk") == Parent("images", "glance", "snap")
        site.store.remove("disk")
    finally:
        site.run("rbd", "snap", "purge", "--no-progress", "images/glance")
        site.run("rbd", "rm", "--no-progress", "images/glance")


def test_an_image_of_the_image_service_is_looked_at_before_it_is_cloned(site: RbdSite, tmp_path: Path) -> None:
    images = RbdImages(site.store, 60)
    raw, other = tmp_path / "raw", tmp_path / "qcow2"
    raw.write_bytes(BEFORE.ljust(5 * MIB, b"\0"))
    other.write_bytes(b"QFI\xfb\0\0\0\x03".ljust(5 * MIB, b"\0"))
    url = f"rbd://{site.ceph.fsid}/images/{{}}/snap".format
    try:
        for file in (raw, other):
            site.run("rbd", "import", "--no-progress", str(file), f"images/{file.name}")
            site.run("rbd", "snap", "create", "--no-progress", f"images/{file.name}@snap")
        found = images.at(url("raw"))
        assert found == StoredImage(url("raw"), 5 * MIB)
        for _ in range(2):
            images.clone(found, "disk")
        assert site.store.parent("disk") == Parent("images", "raw", "snap")
        assert site.content("disk")[: len(BEFORE)] == BEFORE
        # Of another format, or missing.
        for location in (url("qcow2"), url("none"), url("raw") + "2", f"rbd://{site.ceph.fsid}/none/raw/snap"):
            assert images.at(location) is None, location
        site.store.remove("disk")
    finally:
        for file in (raw, other):
            site.run("rbd", "snap", "purge", "--no-progress", f"images/{file.name}")
            site.run("rbd", "rm", "--no-progress", f"images/{file.name}")


def test_a_disk_becomes_a_file_and_a_file_a_disk(site: RbdSite, tmp_path: Path) -> None:
    images = RbdImages(site.store, 60)
    site.make("disk", BEFORE)
    site.store.grow("disk", 512 * MIB)
    site.store.make_snapshot("disk", "label")
    site.write("disk", AFTER)
    for snapshot, first in ((None, AFTER), ("label", BEFORE)):
        file = tmp_path / "file.qcow2"
        for _ in range(2):
            images.export_disk("disk", snapshot, file)
        assert file.stat().st_blocks * 512 < 2 * MIB, "only what is in the disk"
        for _ in range(2):
            images.import_disk(file, "qcow2", "arrived", most=512 * MIB)
        assert site.store.find("arrived").owner is None  # type: ignore[union-attr]
        assert site.content("arrived") == first + bytes(512 * MIB - len(first))
        assert site.run("rbd", "du", f"{POOL}/arrived", "--format", "json").count('"used_size":4194304') >= 1
    site.store.set_owner("arrived", "a 1")
    with pytest.raises(errors.GuestFailed, match="exists already"):
        images.import_disk(file, "qcow2", "arrived", most=512 * MIB)
    with pytest.raises(errors.ImageRefused, match="are the most here"):
        images.import_disk(file, "qcow2", "other", most=511 * MIB)
    assert site.store.names() == ["arrived", "disk"]
    for name, snapshot in (("none", None), ("disk", "none")):
        with pytest.raises(errors.GuestFailed):
            images.export_disk(name, snapshot, file)


def test_a_disk_is_made_of_a_file_with_all_that_the_file_stands_on_and_later_of_another_one(
    bound: RbdSite, tmp_path: Path
) -> None:
    base, content = _image(tmp_path, "raw")
    layer = tmp_path / "layer"
    qemu_img.create(layer, 8 * MIB, qemu_img.Layer(base, "raw"))
    images = RbdImages(bound.store, 60)
    for _ in range(2):
        images.fill(layer, "disk")
        assert bound.content("disk") == content + bytes(8 * MIB - len(content))
    assert bound.store.find("disk").owner is None  # type: ignore[union-attr]
    blank = tmp_path / "blank"
    qemu_img.create(blank, 4 * MIB)
    for _ in range(2):
        images.overwrite(blank, "disk")
        assert bound.content("disk") == bytes(8 * MIB)


def test_hosts_that_import_an_image_at_once_import_it_once(
    bound: RbdSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bug 1858877."""
    file, content = _image(tmp_path, "qcow2")
    real, imported = qemu_img.to_network, []

    def counted(*words: Any, **options: Any) -> None:
        imported.append(words)
        real(*words, **options)

    monkeypatch.setattr(qemu_img, "to_network", counted)
    hosts = [RbdImages(bound.host(), 120) for _ in range(3)]
    with ThreadPoolExecutor(3) as threads:
        bases = list(threads.map(lambda host: host.import_base(IMAGE, file, "qcow2"), hosts))
    assert bases == [f"base_{IMAGE}"] * 3
    assert len(imported) == 1
    assert bound.content(bases[0]) == content
    assert bound.run("rbd", "ls", POOL).split() == [bases[0]]


def test_an_image_that_a_dead_host_has_begun_to_import_is_imported_anew(bound: RbdSite, tmp_path: Path) -> None:
    file, content = _image(tmp_path, "raw")
    partial_name = f"base_{IMAGE}.partial"
    bound.make(partial_name, LARGER)
    images = RbdImages(bound.store, 120, abandoned_after=1)
    began = threading.Event()
    with bound.guest(partial_name) as other, ThreadPoolExecutor(1) as threads:
        assert other.write(BEFORE)

        def imported() -> str:
            began.set()
            return images.import_base(IMAGE, file, "raw")

        importing = threads.submit(imported)
        began.wait()
        with pytest.raises(TimeoutError):
            # The other host is at it.
            importing.result(3)
        other.end()
        assert bound.content(importing.result(120)) == content
    assert bound.run("rbd", "ls", POOL).split() == [f"base_{IMAGE}"]


def test_an_import_waits_for_another_host_only_so_long(bound: RbdSite, tmp_path: Path) -> None:
    file, _content = _image(tmp_path, "raw")
    bound.make(f"base_{IMAGE}.partial", LARGER)
    with bound.guest(f"base_{IMAGE}.partial"), pytest.raises(errors.GuestFailed, match="by another host"):
        RbdImages(bound.store, 2, abandoned_after=1).import_base(IMAGE, file, "raw")


def test_an_image_that_was_imported_and_not_renamed_is_renamed(bound: RbdSite, tmp_path: Path) -> None:
    file, _content = _image(tmp_path, "raw")
    bound.make(f"base_{IMAGE}.partial", LARGER)
    bound.store.make_snapshot(f"base_{IMAGE}.partial", "snap")
    base = RbdImages(bound.store, 60).import_base(IMAGE, file, "raw")
    assert bound.content(base) == LARGER
    assert bound.run("rbd", "ls", POOL).split() == [base]


# disks that are not simply there, or not there


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


# guests that were killed or are locked out


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
        _await(lambda: not bound.store.users("disk"))
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
        with pytest.raises(errors.Misconfigured) as failure:
            site.store.unfence(user)
        assert "client.compute may do" in failure.value.details
        administrator = site.host(user="admin")
        for _ in range(2):
            administrator.unfence(user)
        assert user not in site.blocklist()


def test_a_host_that_another_one_locks_out_in_the_middle_of_a_change_says_so(bound: RbdSite) -> None:
    bound.make("disk", BEFORE)
    other = bound.host()
    with bound.guest("disk") as guest, ThreadPoolExecutor(1) as threads:
        assert guest.write(AFTER)
        (user,) = other.users("disk")
        # Ceph has the guest make the snapshot, for the host.
        guest.freeze()
        change = threads.submit(bound.store.make_snapshot, "disk", "label")
        _await(lambda: len(other.users("disk")) == 2)
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


# a Ceph that does not answer, or not as it is configured


def test_the_monitors_are_those_of_now(site: RbdSite) -> None:
    assert site.store.monitors() == [f"{address}:{port}" for address, port in site.ceph.monitors]


def test_used_and_total_bytes_are_the_pool_s(site: RbdSite) -> None:
    used, total = site.store.used_and_total()
    assert 0 <= used < total <= site.ceph.size_gib * 2**30


def _calls(store: RbdStore, file: Path) -> dict[str, Callable[[], object]]:
    images = RbdImages(store, 60)
    return {
        "find": lambda: store.find("disk"),
        "names": store.names,
        "set_owner": lambda: store.set_owner("disk", "a 1"),
        "make_snapshot": lambda: store.make_snapshot("disk", "other"),
        "roll_back": lambda: store.roll_back("disk", "label"),
        "delete_snapshot": lambda: store.delete_snapshot("disk", "label"),
        "rename": lambda: store.rename("disk", "other"),
        "remove": lambda: store.remove("disk"),
        "users": lambda: store.users("disk"),
        "create": lambda: store.create("new", MIB),
        "clone": lambda: store.clone("disk", "label", "new"),
        "grow": lambda: store.grow("disk", 8 * MIB),
        "flatten": lambda: store.flatten("disk"),
        "parent": lambda: store.parent("disk"),
        "fill": lambda: images.fill(file, "other"),
        "has_base": lambda: images.has_base(IMAGE),
        "import_base": lambda: images.import_base(IMAGE, file, "qcow2"),
        "import_disk": lambda: images.import_disk(file, "qcow2", "new", most=MIB * 1024),
        "export_disk": lambda: images.export_disk("disk", None, file.with_name("export")),
    }


def test_while_storage_is_frozen_every_call_fails_in_time_and_later_works(site: RbdSite, tmp_path: Path) -> None:
    """Bug 1834048."""
    file, _content = _image(tmp_path, "qcow2")
    site.make("disk", BEFORE)
    site.store.make_snapshot("disk", "label")
    store = site.host(request_timeout=3)
    store.find("disk")
    calls = _calls(store, file)
    site.ceph.freeze()
    try:
        with ThreadPoolExecutor(len(calls)) as threads:
            outcomes = {name: threads.submit(_failure, call) for name, call in calls.items()}
            found = {name: outcome.result(120) for name, outcome in outcomes.items()}
    finally:
        site.ceph.thaw()
    assert {name: type(error) for name, error in found.items()} == dict.fromkeys(calls, errors.StorageUnreachable)
    assert store.find("disk") is not None
    store.set_owner("disk", "a 1")


def test_an_import_that_fails_leaves_nothing_that_others_wait_for(
    bound: RbdSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, _content = _image(tmp_path, "qcow2")
    real = qemu_img.to_network
    # The file is gone before it is read.
    monkeypatch.setattr(
        qemu_img, "to_network", lambda path, *words, **options: real(path.with_name("none"), *words, **options)
    )
    with pytest.raises(errors.GuestFailed, match="'qemu-img' failed"):
        RbdImages(bound.store, 60).import_base(IMAGE, file, "qcow2")
    assert bound.run("rbd", "ls", POOL) == ""


def test_an_import_into_storage_that_freezes_fails_as_unreachable(
    bound: RbdSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, _content = _image(tmp_path, "qcow2")
    real = qemu_img.to_network

    def frozen(*words: Any, **options: Any) -> None:
        bound.ceph.freeze()
        real(*words, **options)

    monkeypatch.setattr(qemu_img, "to_network", frozen)
    try:
        with pytest.raises(errors.StorageUnreachable):
            RbdImages(bound.host(request_timeout=3), 20).import_disk(file, "qcow2", "new", most=MIB * 1024)
    finally:
        bound.ceph.thaw()


def test_without_a_monitor_connected_hosts_read_on_and_others_fail_in_time(bound: RbdSite) -> None:
    bound.make("disk", BEFORE)
    connected, other = bound.host(connect_timeout=3), bound.host(connect_timeout=3)
    connected.find("disk")
    bound.ceph.kill_monitor()
    try:
        assert connected.find("disk") is not None
        with pytest.raises(errors.StorageUnreachable):
            connected.used_and_total()
        with pytest.raises(errors.StorageUnreachable):
            other.find("disk")
    finally:
        bound.ceph.start_monitor()
    patient = bound.host(connect_timeout=60)
    assert patient.find("disk") == other.find("disk")
    assert connected.used_and_total()


@pytest.mark.parametrize("wrong", ["keyring", "unreadable keyring", "key", "pool"])
def test_a_host_that_is_configured_wrong_says_what_to_look_at(site: RbdSite, tmp_path: Path, wrong: str) -> None:
    keyring = tmp_path / "keyring"
    if wrong == "key":
        subprocess.run(
            ["ceph-authtool", "-C", keyring, "--gen-key", "-n", "client.compute"], check=True, capture_output=True
        )
    elif wrong == "pool":
        keyring.write_text(site.ceph.keyring("compute").read_text())
    elif wrong == "unreadable keyring":
        keyring.mkdir()
    conf = tmp_path / "ceph.conf"
    text = site.ceph.configuration("compute").read_text()
    conf.write_text(re.sub("(?m)^keyring = .*$", f"keyring = {keyring}", text))
    store = site.host(conf=conf, pool="none" if wrong == "pool" else POOL)
    with pytest.raises(errors.Misconfigured) as failure:
        store.find("disk")
    assert str(conf) in failure.value.details
    assert str(tmp_path) not in failure.value.message


def _image(folder: Path, disk_format: str) -> tuple[Path, bytes]:
    """A file that is an image, and what is in the image: not a whole number of sectors."""
    raw = folder / "raw"
    content = b"an image" * 512 + bytes(3 * MIB) + b"its end"
    raw.write_bytes(content)
    content += bytes(-len(content) % 512)
    if disk_format == "raw":
        return raw, content
    file = folder / "qcow2"
    qemu_img.from_raw(raw, file)
    return file, content


def _failure(call: Callable[[], object]) -> Exception | None:
    try:
        call()
    except errors.CausewayError as error:
        return error
    return None


def _await(good: Callable[[], bool], seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not good():
        assert time.monotonic() < end
        threading.Event().wait(0.5)
