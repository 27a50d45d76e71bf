"""Disks in a real Ceph stand on images, come from files and become files."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from causeway import errors
from causeway.virt.driver import StoredImage
from causeway.virt.libvirt.storage import qemu_img
from causeway.virt.libvirt.storage.rbd.images import RbdImages
from causeway.virt.libvirt.storage.rbd.protocol import Parent
from tests.integration.real_services.rbd_site import POOL, RbdSite, image_file
from tests.shared_stores import AFTER, BEFORE, LARGER

pytestmark = pytest.mark.timeout(300)
MIB = 2**20
IMAGE = "0b5c2f3e-6d5b-4a52-8f5a-3d2c1b0a9f8e"


@pytest.mark.parametrize("disk_format", ["raw", "qcow2"])
def test_a_disk_stands_on_a_base_image_with_raw_bytes_until_it_is_flattened(
    site: RbdSite, tmp_path: Path, disk_format: str
) -> None:
    """Bug 1816686."""
    file, content = image_file(tmp_path, disk_format)
    images = RbdImages(site.store, 60)
    assert not images.has_base(IMAGE)
    for _ in range(2):
        base = images.import_base(IMAGE, file, disk_format)
        assert images.has_base(IMAGE)
    assert site.content(base) == content
    for _ in range(2):
        site.store.clone(base, "snap", "disk")
        assert site.store.existing("disk").parent == Parent(POOL, base, "snap")
    site.store.grow("disk", 8 * MIB)
    site.write("disk", AFTER)
    expected = AFTER + content[len(AFTER) :] + bytes(8 * MIB - len(content))
    for _ in range(2):
        site.store.flatten("disk")
        assert site.store.existing("disk").parent is None
    assert site.content("disk") == expected
    assert site.content(base) == content
    assert site.store.names() == ["disk"], "base images are no disks"
    with pytest.raises(errors.GuestFailed):
        site.store.clone("no-base", "snap", "other")


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
        assert site.store.existing("disk").parent == Parent("images", "raw", "snap")
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
            images.fill(file, "arrived")
        assert site.store.find("arrived").owner is None  # type: ignore[union-attr]
        assert site.content("arrived") == first + bytes(512 * MIB - len(first))
        assert site.run("rbd", "du", f"{POOL}/arrived", "--format", "json").count('"used_size":4194304') >= 1
    assert site.store.names() == ["arrived", "disk"]
    for name, snapshot in (("none", None), ("disk", "none")):
        with pytest.raises(errors.GuestFailed):
            images.export_disk(name, snapshot, file)


def test_a_disk_is_made_of_a_file_with_all_that_the_file_stands_on_and_later_of_another_one(
    bound: RbdSite, tmp_path: Path
) -> None:
    base, content = image_file(tmp_path, "raw")
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
    file, content = image_file(tmp_path, "qcow2")
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
    file, content = image_file(tmp_path, "raw")
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
    file, _content = image_file(tmp_path, "raw")
    bound.make(f"base_{IMAGE}.partial", LARGER)
    with bound.guest(f"base_{IMAGE}.partial"), pytest.raises(errors.GuestFailed, match="by another host"):
        RbdImages(bound.store, 2, abandoned_after=1).import_base(IMAGE, file, "raw")


def test_an_image_that_was_imported_and_not_renamed_is_renamed(bound: RbdSite, tmp_path: Path) -> None:
    file, _content = image_file(tmp_path, "raw")
    bound.make(f"base_{IMAGE}.partial", LARGER)
    bound.store.make_snapshot(f"base_{IMAGE}.partial", "snap")
    base = RbdImages(bound.store, 60).import_base(IMAGE, file, "raw")
    assert bound.content(base) == LARGER
    assert bound.run("rbd", "ls", POOL).split() == [base]


def test_an_import_that_fails_leaves_nothing_that_others_wait_for(
    bound: RbdSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, _content = image_file(tmp_path, "qcow2")
    real = qemu_img.to_network
    # The file is gone before it is read.
    monkeypatch.setattr(
        qemu_img, "to_network", lambda path, *words, **options: real(path.with_name("none"), *words, **options)
    )
    with pytest.raises(errors.GuestFailed, match="'qemu-img' failed"):
        RbdImages(bound.store, 60).import_base(IMAGE, file, "qcow2")
    assert bound.run("rbd", "ls", POOL) == ""
