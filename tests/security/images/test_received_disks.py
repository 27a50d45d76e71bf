"""Disks of another host: whatever it says they are, only what hosts send is taken, and no disk is larger than its flavor's."""

from __future__ import annotations

import os
import shutil
import uuid
from pathlib import Path
from typing import Any

import pytest

from causeway.errors import GuestFailed, GuestRefused, ImageRefused
from causeway.model.flavor import Flavor
from causeway.model.instance import Instance
from causeway.virt.driver import BaseImage, GuestSpec, LocalDisk, RootDisk
from causeway.virt.libvirt.commands import run
from causeway.virt.libvirt.live import live_target
from causeway.virt.libvirt.storage import qemu_img
from causeway.virt.libvirt.storage.disks import InstanceDisks
from causeway.virt.live_guest import LiveDisk, LiveSource, Presence
from causeway.virt.simulated import disk as simulated_disk
from tests.security.images.contents import CONTENTS, DISK_FORMATS, MIB, qcow2, vmdk_text

pytestmark = pytest.mark.skipif(shutil.which("qemu-img") is None, reason="qemu-img is not installed")

SERVER = str(uuid.uuid4())
GIB = 1 << 30


@pytest.fixture
def disks(tmp_path: Path) -> InstanceDisks:
    return InstanceDisks(tmp_path / "instances", 30.0)


def came(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "came"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("name", CONTENTS)
def test_only_qcow2_that_names_no_file_is_taken(tmp_path: Path, disks: InstanceDisks, name: str) -> None:
    content, accepted = CONTENTS[name]
    for said in DISK_FORMATS:
        root = RootDisk(None, None, snapshot=came(tmp_path, content), snapshot_format=said, size_gb=1)
        if said == "qcow2" and "qcow2" in accepted:
            continue  # these have no tables: see below for one that is whole
        with pytest.raises(ImageRefused):
            disks.create_root(SERVER, root)
        assert [path.name for path in disks.folder(SERVER).iterdir()] == []
        local = LocalDisk("disk.eph0", "/dev/vdb", 1024, snapshot=came(tmp_path, content), snapshot_format=said)
        with pytest.raises(ImageRefused):
            disks.make_local(SERVER, local)


def test_nothing_of_a_file_that_a_source_names_arrives(tmp_path: Path, disks: InstanceDisks) -> None:
    """The attack: the source says "vmdk" (or raw), and the target's qemu-img reads the target's file into the disk."""
    secret = tmp_path / "secret"
    secret.write_bytes(b"of this host".ljust(MIB, b"\0"))
    secret.chmod(0o600)
    for said in ("vmdk", "raw", "qcow2"):
        snapshot = came(tmp_path, vmdk_text(secret))
        with pytest.raises(ImageRefused):
            disks.create_root(SERVER, RootDisk(None, None, snapshot=snapshot, snapshot_format=said, size_gb=1))
    assert not any(b"of this host" in path.read_bytes() for path in disks.directory.rglob("*") if path.is_file())


def test_a_disk_of_a_raw_image_that_is_deleted_soon_stands_alone(tmp_path: Path, disks: InstanceDisks) -> None:
    """The disk of a shelved server holds whatever its guest wrote, which may be the header of a format that names files."""
    content, _accepted = CONTENTS["qcow2 with a backing file"]
    image = came(tmp_path, content.ljust(MIB, b"\0"))
    root = RootDisk(BaseImage(image, "raw", MIB), None, size_gb=1, stands_alone=True)
    disks.create_root(SERVER, root)
    made = disks.root(SERVER)
    assert (qemu_img.layer_below(made), qemu_img.virtual_size(made)) == (None, GIB)
    run("qemu-img", "convert", "-O", "raw", made, tmp_path / "again", timeout=30.0)
    assert (tmp_path / "again").read_bytes()[:MIB] == image.read_bytes()


@pytest.mark.parametrize(("size", "fits"), [(MIB, True), (GIB, True), (GIB + 512, False), (100 << 40, False)])
def test_a_disk_is_at_most_as_large_as_the_flavor_says(
    tmp_path: Path, disks: InstanceDisks, size: int, fits: bool
) -> None:
    base_path, snapshot = tmp_path / "base", tmp_path / "came"
    base_path.write_bytes(bytes(MIB))
    base = BaseImage(base_path, "raw", MIB)

    def take(folder_of: str) -> None:
        run("qemu-img", "create", "-q", "-f", "qcow2", snapshot, str(size))
        if folder_of == "root":
            disks.create_root(SERVER, RootDisk(base, "base", snapshot=snapshot, size_gb=1))
        else:
            local = LocalDisk("disk.eph0", "/dev/vdb", 1024, snapshot=snapshot)
            disks.make_local(SERVER, local)

    for kind in ("root", "local"):
        disks.make_folder(SERVER)
        if not fits:
            with pytest.raises(ImageRefused, match=str(size)):
                take(kind)
            continue
        take(kind)
        made = disks.root(SERVER) if kind == "root" else disks.folder(SERVER) / "disk.eph0"
        assert qemu_img.virtual_size(made) == GIB
        assert qemu_img.layer_below(made) == (qemu_img.Layer(base_path, "raw") if kind == "root" else None)
        assert made.stat().st_uid == os.geteuid() and made.stat().st_nlink == 1
    assert not list(disks.directory.rglob(".alone*"))


def test_a_flavor_without_a_size_takes_a_disk_that_a_host_can_hold(tmp_path: Path, disks: InstanceDisks) -> None:
    snapshot = tmp_path / "came"
    run("qemu-img", "create", "-q", "-f", "qcow2", snapshot, str(100 << 40))
    disks.make_folder(SERVER)
    with pytest.raises(ImageRefused):
        disks.create_root(SERVER, RootDisk(None, None, snapshot=snapshot))
    run("qemu-img", "create", "-q", "-f", "qcow2", snapshot, str(3 * MIB))
    disks.create_root(SERVER, RootDisk(None, None, snapshot=snapshot))
    assert qemu_img.virtual_size(disks.root(SERVER)) == 3 * MIB


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another account")
def test_the_program_that_changes_a_foreign_file_can_open_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if the check had missed something: it is another account, in a folder with this file alone."""
    tmp_path.chmod(0o700)
    secret, path = tmp_path / "secret", tmp_path / "disk"
    secret.write_text("of this host")
    secret.chmod(0o600)
    run("qemu-img", "create", "-q", "-f", "qcow2", path, "1M")
    tried: list[str] = []

    def run_another(*words: str | Path, **options: Any) -> str:
        before = words[: words.index("qemu-img")]
        tried.append(run(*before, "sh", "-c", f"id -u; ls; cat {secret} || echo refused", **options))
        return run(*words, **options)

    monkeypatch.setattr(qemu_img, "run", run_another)
    qemu_img.settle_foreign(path, None, 2 * MIB)
    assert tried
    for said in tried:
        account, *names, verdict = said.split()
        assert (int(account) > 0, names, verdict) == (True, ["disk"], "refused")
    assert (path.stat().st_uid, path.stat().st_nlink) == (0, 1)


def test_an_attempt_that_was_killed_half_way_is_done_again(
    tmp_path: Path, disks: InstanceDisks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file was another account's at that moment, and had a second name."""
    snapshot = tmp_path / "came"
    run("qemu-img", "create", "-q", "-f", "qcow2", snapshot, "1M")
    root = RootDisk(None, None, snapshot=snapshot, size_gb=1)

    def killed(*_words: str | Path, **_options: Any) -> str:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(qemu_img, "run", killed)
        patch.setattr(qemu_img.os, "chown", lambda *_given: None)  # type: ignore[attr-defined]
        patch.setattr(qemu_img.shutil, "rmtree", lambda *_given, **_more: None)  # type: ignore[attr-defined]
        with pytest.raises(KeyboardInterrupt):
            disks.create_root(SERVER, root)
    received = disks.folder(SERVER) / "disk.received"
    if os.geteuid() == 0:
        assert received.stat().st_nlink == 2
        os.chown(received, 65534, 65534)
    disks.create_root(SERVER, root)
    made = disks.root(SERVER).stat()
    assert (made.st_uid, made.st_gid, made.st_nlink) == (os.geteuid(), os.getegid(), 1)
    assert not list(disks.folder(SERVER).glob(".alone*"))


def live_source(*disks: LiveDisk) -> LiveSource:
    return LiveSource("QEMU", 1, list(disks))


@pytest.mark.parametrize(
    "disk",
    [
        LiveDisk("disk", 100 << 40),
        LiveDisk("disk", GIB + 1),
        LiveDisk("disk.eph0", (64 << 20) + 1),
        LiveDisk("disk.eph1", 1),
        LiveDisk("disk.info", 1),
        LiveDisk("../disk", 1),
    ],
    ids=repr,
)
def test_a_source_of_a_live_migration_has_no_disk_made_that_the_server_does_not_have(
    disks: InstanceDisks, disk: LiveDisk
) -> None:
    instance = Instance(SERVER, "project", "user", "name", Flavor("1", "small", 1, 128, 1))
    local = LocalDisk("disk.eph0", "/dev/vdb", 64)
    spec = GuestSpec(instance, RootDisk(None, None, size_gb=1), [], [], local_disks=[local])
    with pytest.raises(GuestRefused):
        live_target.make_disks(disks, spec, live_source(disk), Presence.ABSENT)
    assert not list(disks.directory.rglob("disk*"))
    live_target.make_disks(disks, spec, live_source(LiveDisk("disk", GIB), LiveDisk("disk.eph0", MIB)), Presence.ABSENT)
    assert qemu_img.virtual_size(disks.root(SERVER)) == GIB


def test_a_server_whose_disk_stands_on_an_image_of_the_earlier_release_does_not_start(
    tmp_path: Path, disks: InstanceDisks
) -> None:
    image = tmp_path / "image"
    image.write_bytes(vmdk_text("/etc/shadow"))
    for path in (disks.root(SERVER), disks.rescue(SERVER)):
        disks.make_folder(SERVER)
        qemu_img.create(path, MIB, qemu_img.Layer(image, "vmdk"))
        with pytest.raises(GuestFailed, match="not known to be raw or qcow2"):
            disks.check_usable(SERVER)
        path.unlink()
    qemu_img.create(disks.root(SERVER), MIB, qemu_img.Layer(image, "vmdk"))
    for flatten in (True, False):
        with (
            pytest.raises(GuestFailed, match="not known to be raw or qcow2"),
            disks.export(SERVER, "disk", image_ref="image", flatten=flatten),
        ):
            pass


@pytest.mark.parametrize(("said", "size_gb"), [("vmdk", 1), ("raw", 1), ("qcow2", 3)])
def test_simulated_hosts_refuse_the_same(tmp_path: Path, said: str, size_gb: int) -> None:
    sent = simulated_disk.Disk(simulated_disk.Header(size_gb=size_gb)).exported()
    root = RootDisk(None, None, snapshot=came(tmp_path, sent), snapshot_format=said, size_gb=2)
    with pytest.raises(ImageRefused):
        simulated_disk.create(tmp_path / "disk", root)
    sent = simulated_disk.Disk(simulated_disk.Header(size_mb=65 * size_gb)).exported()
    local = LocalDisk("disk.eph0", "/dev/vdb", 64 * size_gb, snapshot=came(tmp_path, sent), snapshot_format=said)
    with pytest.raises(ImageRefused):
        simulated_disk.create_local(tmp_path / "disk.eph0", local)


def test_torn_tables_are_an_error_and_no_more(tmp_path: Path, disks: InstanceDisks) -> None:
    """A header that is in order, and tables that are not."""
    snapshot = came(tmp_path, qcow2(size=GIB))
    disks.make_folder(SERVER)
    with pytest.raises(GuestFailed):
        disks.create_root(SERVER, RootDisk(None, None, snapshot=snapshot, size_gb=1))
    assert not disks.root(SERVER).exists()
