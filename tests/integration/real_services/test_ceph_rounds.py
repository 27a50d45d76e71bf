"""Disks in a real Ceph are copied while somebody writes to them, into another pool or into files; a judge compares both ends."""

from __future__ import annotations

import io
import subprocess
import uuid as uuids
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from causeway import durable, errors
from causeway.compute.disks import changes
from causeway.compute.disks import rounds as compute_rounds
from causeway.compute.disks.copies import Copies
from causeway.compute.disks.rounds import Rounds
from causeway.model.flavor import Flavor
from causeway.model.instance import Instance
from causeway.model.outcomes import OperationToken
from causeway.model.shared_disk import ARRIVING, ROUND
from causeway.model.states import PowerState
from causeway.model.warm import CopiedDisk, CopyRound
from causeway.virt import warm
from causeway.virt.driver import BaseImage, Driver, LocalDisk, RootDisk
from causeway.virt.libvirt import power
from causeway.virt.libvirt.guest_xml.rbd_source import CephAccess
from causeway.virt.libvirt.storage import rbd_disks
from causeway.virt.libvirt.storage.disks import InstanceDisks
from causeway.virt.libvirt.storage.rbd_disks import RbdDisks
from causeway.virt.libvirt.storage.snapshot_rounds import SnapshotRounds
from tests.integration.real_services.ceph import Ceph
from tests.integration.real_services.rbd_site import POOL, RbdSite
from tests.unit.compute.streams import joined

pytestmark = pytest.mark.timeout(300)
MIB = 2**20
OTHER_POOL = "volumes"
IMAGE = "0b5c2f3e-6d5b-4a52-8f5a-3d2c1b0a9f8e"


class Host:
    """As much of a driver as rounds and copies use, of guests that always run."""

    def __init__(self, disks: InstanceDisks, name: str) -> None:
        self.disks = disks
        self.snapshots = SnapshotRounds(cast(Any, None), disks, name) if isinstance(disks, RbdDisks) else None
        self.open_copy, self.has_copy = disks.open_copy, disks.has_copy
        self.discard_copy = disks.discard_copy

    @property
    def _rounds(self) -> SnapshotRounds:
        assert self.snapshots is not None
        return self.snapshots

    def begin_round(
        self,
        instance: Instance,
        names: list[str],
        number: int,
        *,
        since: int | None,
        flatten: bool,  # noqa: ARG002
    ) -> warm.Round:
        return self._rounds.begin(instance, names, number, since=since)

    def has_round(self, instance: Instance, number: int) -> bool:
        return self._rounds.has(instance.uuid, number)

    def open_round(self, instance: Instance, name: str, number: int) -> AbstractContextManager[warm.DiskReader]:
        return self._rounds.open(instance.uuid, name, number)

    def end_round(self, instance: Instance, number: int) -> None:  # noqa: ARG002
        self._rounds.end(instance.uuid)

    def open_changes(self, instance: Instance, name: str, since: int) -> AbstractContextManager[warm.DiskReader | None]:
        return self._rounds.open_changes(instance.uuid, name, since)

    def end_rounds(self, uuid: str) -> None:
        self._rounds.discard(uuid)


@dataclass
class Move:
    """Of a server with a root disk on a base image, and an ephemeral disk, in the first pool."""

    site: RbdSite
    instance: Instance
    source: Host
    target: Host
    folder: Path
    base: BaseImage
    rounds: Rounds
    copies: Copies
    token: OperationToken

    @property
    def uuid(self) -> str:
        return self.instance.uuid

    def begin(self, since: int | None = None) -> CopyRound:
        names = ["disk", "disk.eph0"]
        return self.rounds.begin(self.token, self.instance, names, since=since, flatten=False, url="")

    def receive(self, copied: CopyRound, *, parts: int | None = None) -> int:
        """``parts``: the transfer breaks off after so many of a disk."""

        @contextmanager
        def opened(disk: CopiedDisk, part: int) -> Iterator[changes.Source]:
            if part == parts:
                raise errors.DiskTransferBroken("It broke off.")
            pieces = self.rounds.read_part(self.token.operation_id, copied.number, disk.name, part)
            # Each is valid until the next one is wanted.
            yield io.BytesIO(b"".join(bytes(piece) for piece in pieces))

        self.copies.begin(self.token, self.uuid, copied)
        return sum(
            self.copies.receive(self.token, copied, disk, opened, lambda _id: self.base, lambda *_: None)
            for disk in copied.disks
        )

    def complete(self, since: int, name: str = "disk") -> Path | None:
        export = self.rounds.changes_since(self.token.operation_id, name, since)
        last = self.folder / f"{name}.last"
        last.write_bytes(export.path.read_bytes())
        return self.copies.complete(self.token, name, last, lambda _id: self.base)

    def take(self, name: str, path: Path | None) -> None:
        """The driver takes a copy as the disk of its guest."""
        self.target.disks.make_folder(self.uuid)
        if name == "disk":
            wanted = RootDisk(None, None, snapshot=path, is_copy=True)
            self.target.disks.create_root(self.uuid, wanted)
        else:
            self.target.disks.make_local(
                self.uuid, LocalDisk(name, "/dev/vdb", 64, "ext4", snapshot=path, is_copy=True)
            )

    def content_there(self, name: str) -> bytes:
        """As somebody sees it who is not the host."""
        if isinstance(self.target.disks, RbdDisks):
            return self.site.content(f"{self.uuid}_{name}", OTHER_POOL)
        raw = self.folder / "raw"
        file = self.target.disks.folder(self.uuid) / name
        subprocess.run(["qemu-img", "convert", "-O", "raw", file, raw], check=True)
        return raw.read_bytes()

    def content_here(self, name: str) -> bytes:
        return self.site.content(f"{self.uuid}_{name}")

    def snapshots(self) -> list[str]:
        image = self.site.store.image(f"{self.uuid}_disk")
        return [] if image is None else image.snapshots

    def in_other_pool(self) -> list[str]:
        return [name for name in self.site.run("rbd", "ls", OTHER_POOL).split() if name.startswith(self.uuid)]


@pytest.fixture(params=["another pool", "files"])
def move(request: pytest.FixtureRequest, ceph: Ceph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Move]:
    monkeypatch.setattr(power, "state", lambda *_: PowerState.RUNNING)
    site = RbdSite(ceph)

    def host(name: str, pool: str | None) -> Host:
        folder = tmp_path / name
        if pool is None:
            return Host(InstanceDisks(folder, 60), name)
        return Host(RbdDisks(folder, 60, site.host(pool=pool, busy_timeout=60), name, lambda: CephAccess(())), name)

    source, target = host("a", POOL), host("b", OTHER_POOL if request.param == "another pool" else None)
    raw = tmp_path / "base"
    raw.write_bytes(b"base" * MIB + bytes(12 * MIB) + b"end!" * MIB + bytes(76 * MIB))
    base = BaseImage(raw, "raw", raw.stat().st_size)
    instance = Instance(str(uuids.uuid4()), "project", "user", "moved", Flavor("1", "small", 1, 64, root_gb=1))
    source.disks.create_root(instance.uuid, RootDisk(base, IMAGE))
    source.disks.make_local(instance.uuid, LocalDisk("disk.eph0", "/dev/vdb", 64, "ext4"))
    copies = Copies(tmp_path / "copies", cast(Driver, target))
    rounds = Rounds(tmp_path / "rounds", cast(Driver, source), lambda _size: None)
    token = OperationToken(str(uuids.uuid4()), str(uuids.uuid4()), 1, "CopyWhileRunning")
    yield Move(site, instance, source, target, tmp_path, base, rounds, copies, token)
    rounds.discard_all(instance.uuid)
    copies.discard_all(instance.uuid)
    for disks in (source.disks, target.disks):
        disks.delete(instance.uuid)
    assert site.run("rbd", "ls", POOL).split() == [f"base_{IMAGE}"]
    assert move_left(site) == []
    site.close()


def move_left(site: RbdSite) -> list[str]:
    return [name for name in site.run("rbd", "ls", OTHER_POOL).split() if not name.startswith("base_")]


def test_what_is_written_meanwhile_arrives_and_little_travels_at_the_end(move: Move) -> None:
    with move.site.guest(f"{move.uuid}_disk") as guest:
        assert guest.write(b"before" * 1000, 40 * MIB)
        first = move.begin()
        whole = move.receive(first)
        # Only what is allocated.
        assert 8 * MIB <= whole <= 24 * MIB
        assert guest.write(b"meanwhile" * 1000, 50 * MIB)
        assert guest.write(b"over the base", 0)
        guest.discard(16 * MIB, MIB)
        second = move.begin(first.number)
        assert second.since == first.number
        assert 0 < move.receive(second) <= MIB
        assert move.site.store.users(f"{move.uuid}_disk") != []
        guest.write(b"at last", 90 * MIB)
    move.rounds.end(move.token.operation_id)
    for name in ("disk", "disk.eph0"):
        move.take(name, move.complete(second.number, name))
        assert move.content_there(name) == move.content_here(name)
    assert b"at last" in move.content_here("disk")
    move.rounds.discard(move.token.operation_id)
    assert move.snapshots() == []
    move.copies.discard(move.token.operation_id)
    assert not any(ARRIVING in name for name in move.in_other_pool())


def test_a_torn_round_is_repeated_and_continues_where_it_broke_off(move: Move, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compute_rounds, "PART_BYTES", 4 * MIB)
    with move.site.guest(f"{move.uuid}_disk") as guest:
        for part in range(3):
            assert guest.write(b"x" * 64 * 1024, part * 20 * MIB)
        first = move.begin()
        assert first.disks[0].parts > 2
        with pytest.raises(errors.DiskTransferBroken):
            move.receive(first, parts=1)
        assert move.target.disks.by_uuid() == {}
        again = move.begin()
        assert again.number == first.number
        assert 0 < move.receive(again) < 8 * MIB
        assert guest.write(b"y" * 64, 30 * MIB)
        lost = move.begin(again.number)
        third = move.begin(again.number)
        assert lost.number == third.number == again.number + 1
        move.rounds.end(move.token.operation_id)
        fourth = move.begin(again.number)
        assert fourth.number == again.number + 2 and fourth.since == again.number
        assert {label.rpartition("-")[2] for label in move.snapshots()} == {str(again.number), str(fourth.number)}
        move.receive(fourth)
    move.take("disk", move.complete(fourth.number))
    assert move.content_there("disk") == move.content_here("disk")


def test_a_copy_that_is_half_received_is_nobody_s_and_is_deleted(move: Move) -> None:
    first = move.begin()
    move.receive(first)
    if isinstance(move.target.disks, RbdDisks):
        assert all(ARRIVING in name for name in move.in_other_pool())
        for stored in move.target.disks.list_storage():
            assert stored.owner is None
    move.copies.discard(move.token.operation_id)
    assert move.in_other_pool() == []
    with pytest.raises(errors.DiskTransferFailed):
        move.complete(first.number)


@pytest.mark.parametrize("move", ["another pool"], indirect=True)
def test_a_copy_that_a_former_process_still_writes_waits_for_its_end(
    move: Move, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(move.target.disks, RbdDisks)
    first = move.begin()
    move.receive(first)
    second = move.begin(first.number)
    name = f"{move.uuid}_disk{ARRIVING}{move.token.operation_id[:8]}"
    with move.site.guest(name, OTHER_POOL), monkeypatch.context() as patches:
        patches.setattr(rbd_disks, "_WATCHED_SECONDS", 1.0)
        with pytest.raises(errors.DiskInUse):
            move.complete(first.number)
    # It has ended.
    assert second.number == first.number + 1
    move.take("disk", move.complete(first.number))
    assert move.content_there("disk") == move.content_here("disk")


def test_what_changed_since_is_known_after_a_crash_of_everything(move: Move, tmp_path: Path) -> None:
    """Of QEMU and of the compute: snapshots stay."""
    first = move.begin()
    move.receive(first)
    with move.site.guest(f"{move.uuid}_disk") as guest:
        assert guest.write(b"z" * 64, 70 * MIB)
        guest.kill()
    move.rounds = Rounds(tmp_path / "rounds", cast(Driver, move.source), lambda _size: None)
    move.copies = Copies(tmp_path / "copies", cast(Driver, move.target))
    move.take("disk", move.complete(first.number))
    assert move.content_there("disk") == move.content_here("disk")


def test_rounds_whose_snapshot_is_gone_begin_anew(move: Move) -> None:
    first = move.begin()
    move.receive(first)
    for label in move.snapshots():
        move.site.store.delete_snapshot(f"{move.uuid}_disk", label)
    second = move.begin(first.number)
    assert second.since is None
    # The other disk's snapshots of before are gone, too.
    image = move.site.store.existing(f"{move.uuid}_disk.eph0")
    assert [label.rpartition("-")[2] for label in image.snapshots] == [str(second.number)]
    with pytest.raises(errors.WarmCopyImpossible):
        move.rounds.changes_since(move.token.operation_id, "disk", first.number)


def test_rounds_delete_no_other_snapshot_and_none_keeps_a_disk_from_being_deleted(move: Move) -> None:
    name = f"{move.uuid}_disk"
    move.site.store.make_snapshot(name, "stash-a-1")
    move.site.store.make_snapshot(name, f"{ROUND}dead-host-12345678-7")
    move.begin()
    labels = move.snapshots()
    assert "stash-a-1" in labels and len(labels) == 2
    move.rounds.discard(move.token.operation_id)
    assert move.snapshots() == ["stash-a-1"]
    move.site.store.delete_snapshot(name, "stash-a-1")
    move.begin()
    move.source.disks.delete(move.uuid)
    assert move.site.store.image(name) is None
    # Also without the disk.
    move.rounds.discard(move.token.operation_id)
    move.source.disks.make_folder(move.uuid)


@pytest.mark.parametrize("move", ["another pool"], indirect=True)
@pytest.mark.parametrize("until", ["noted", "owned", "renamed"])
def test_a_copy_is_taken_whenever_the_host_dies(move: Move, monkeypatch: pytest.MonkeyPatch, until: str) -> None:
    assert isinstance(move.target.disks, RbdDisks)
    first = move.begin()
    move.receive(first)
    path = move.complete(first.number)
    store = move.target.disks.store
    owner, deadly = {"noted": (store, "set_owner"), "owned": (store, "rename"), "renamed": (durable, "delete")}[until]
    with monkeypatch.context() as patches:
        patches.setattr(owner, deadly, _died)
        with pytest.raises(KeyboardInterrupt):
            move.take("disk", path)
    # The order is repeated: the last changes arrive again, unless the guest has the disk.
    again = move.complete(first.number)
    assert (again is None) is (until == "renamed")
    assert move.copies.is_taken(move.token.operation_id) is (until == "renamed")
    if again is not None:
        move.take("disk", again)
    assert move.target.disks.offered(move.uuid).keys() == {"disk"}
    assert move.content_there("disk")[: 20 * MIB] == move.content_here("disk")[: 20 * MIB]
    move.copies.discard(move.token.operation_id)
    assert move.in_other_pool() == [f"{move.uuid}_disk"]


def _died(*_words: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("move", ["another pool"], indirect=True)
def test_a_copy_stands_on_the_base_image_that_the_source_leaves_out(move: Move) -> None:
    """As from files. What the source has zeroed is zero."""
    copied = CopyRound(1, None, "", "", [CopiedDisk("disk", 100 * MIB, 65536, 1, 1, IMAGE)])
    digests = changes.Digests(100 * MIB, 65536)

    class Source(warm.DiskReader):
        def extents(self) -> list[tuple[int, int]]:
            return [(0, MIB), (50 * MIB, MIB)]

        def read_into(self, offset: int, buffer: memoryview) -> None:
            buffer[:] = (b"\0" if offset < MIB else b"n") * len(buffer)

        def is_of_base(self, offset: int, data: memoryview) -> bool:  # noqa: ARG002
            return False

    sent = joined(changes.stream(Source(), Source().extents(), digests, is_full=True))
    move.copies.begin(move.token, move.uuid, copied)
    for disk in copied.disks:
        move.copies.receive(move.token, copied, disk, _stream(sent), lambda _id: move.base, lambda *_: None)
    (name,) = move.in_other_pool()
    content = move.site.content(name, OTHER_POOL)
    assert content[:MIB] == bytes(MIB) and content[MIB : 20 * MIB] == move.base.path.read_bytes()[MIB : 20 * MIB]
    assert content[50 * MIB : 51 * MIB] == b"n" * MIB and len(content) == 100 * MIB


def _stream(sent: bytes) -> Any:
    @contextmanager
    def opened(_disk: CopiedDisk, _part: int) -> Iterator[changes.Source]:
        yield io.BytesIO(sent)

    return opened
