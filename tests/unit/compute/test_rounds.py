"""The source's side of a warm copy: what it notes is what the target has, whoever else still reads."""

from __future__ import annotations

import secrets
import uuid as uuids
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest

from causeway import durable, errors
from causeway.compute.disks import changes, rounds
from causeway.compute.disks.disk_server import DiskServer
from causeway.compute.disks.rounds import Rounds
from causeway.compute.handover import offered_at
from causeway.model.flavor import Flavor
from causeway.model.instance import Instance
from causeway.model.outcomes import OperationToken
from causeway.model.warm import CopyRound
from causeway.virt.warm import DiskReader, DiskWriter, Round, RoundDisk
from tests.unit.compute.streams import Stream

BLOCK, PARTS = 512, 4
MOVE = str(uuids.uuid4())
TOKEN = OperationToken(MOVE, MOVE, 1, "CopyWhileRunning")
SERVER = Instance(
    str(uuids.uuid4()), "project", "user", "server", Flavor("one", "one", vcpus=1, memory_mb=1, root_gb=1)
)


class Disk(DiskReader):
    """Each of its blocks has other bytes."""

    def extents(self) -> list[tuple[int, int]]:
        return [(0, PARTS * BLOCK)]

    def read_into(self, offset: int, buffer: memoryview) -> None:
        end = offset + len(buffer)
        buffer[:] = b"".join(bytes([1 + at // BLOCK]) * BLOCK for at in range(offset, end, BLOCK))

    def is_of_base(self, offset: int, data: memoryview) -> bool:  # noqa: ARG002
        return False


class Hypervisor:
    """As much of a driver as rounds need. ``limits``: what guests were limited to, one after the other."""

    limits: ClassVar[list[int | None]] = []

    def limit_writes(self, _instance: Instance, bytes_per_second: int | None) -> None:
        self.limits.append(bytes_per_second)

    def begin_round(
        self, _instance: Instance, _names: list[str], number: int, *, since: int | None, **_more: Any
    ) -> Round:
        return Round(number, since, [RoundDisk("disk", PARTS * BLOCK, BLOCK, None)])

    def has_round(self, _instance: Instance, _number: int) -> bool:
        return True

    @contextmanager
    def open_round(self, *_given: Any) -> Iterator[Disk]:
        yield Disk()

    def end_round(self, *_given: Any) -> None:
        """Nothing is open."""

    end_rounds = end_round
    open_changes = open_round


class Nowhere(DiskWriter):
    def write(self, offset: int, data: bytes | memoryview) -> None:
        """Only the digests matter."""

    def write_zeros(self, offset: int, length: int) -> None:
        """Only the digests matter."""

    def flush(self) -> None:
        """There is nothing."""


class Target:
    def __init__(self, source: Rounds) -> None:
        self._source, self._digests = source, changes.Digests(PARTS * BLOCK, BLOCK)
        self._number = begin(source).number

    def receive(self, part: int) -> None:
        pieces = self._source.read_part(MOVE, self._number, "disk", part)
        changes.apply(Stream(pieces), Nowhere(), self._digests, lambda *_sizes: None)
        assert list(pieces) == []


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rounds:
    monkeypatch.setattr(rounds, "PART_BYTES", BLOCK)
    return started(tmp_path)


def started(tmp_path: Path) -> Rounds:
    driver: Any = Hypervisor()
    return Rounds(tmp_path / "rounds", driver, lambda _size: None)


def begin(source: Rounds, since: int | None = None) -> CopyRound:
    """Begins a round, unless the present one is the same."""
    return source.begin(TOKEN, SERVER, ["disk"], since=since, flatten=False, url="")


def slow_reader(source: Rounds, part: int = 0) -> Iterator[bytes | memoryview]:
    """Of a part, as somebody reads whom the target has abandoned: all but its end is sent."""
    reading = source.read_part(MOVE, begin(source).number, "disk", part)
    next(reading)
    return reading


def test_an_abandoned_reader_does_not_undo_what_was_noted_since(source: Rounds) -> None:
    abandoned, target = slow_reader(source), Target(source)
    for part in (0, 1):
        target.receive(part)
    with pytest.raises(errors.DiskTransferBroken):
        list(abandoned)
    for part in (2, 3):
        target.receive(part)


def test_a_reader_of_an_earlier_round_notes_nothing_in_the_next(source: Rounds, tmp_path: Path) -> None:
    abandoned = slow_reader(source)
    source.end(MOVE)
    begin(source)
    with pytest.raises(errors.DiskTransferBroken):
        list(abandoned)
    assert not list((tmp_path / "rounds").glob("*/disk.digests"))


def test_a_reader_that_is_still_at_it_when_the_guest_has_gone_breaks_off(source: Rounds, tmp_path: Path) -> None:
    abandoned = slow_reader(source)
    source.discard(MOVE)
    with pytest.raises(errors.DiskTransferBroken):
        list(abandoned)
    assert not list((tmp_path / "rounds").iterdir())


def test_a_round_continues_after_a_restart_of_its_process(source: Rounds, tmp_path: Path) -> None:
    first = begin(source)
    begun = begin(source, first.number)
    again = begin(started(tmp_path), first.number)
    assert (again.number, again.since, again.secret) == (begun.number, first.number, first.secret)


def test_a_round_ends_with_its_machine(source: Rounds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither its record nor what the hypervisor knows of changes may have come to the medium."""
    first = begin(source)
    later = begin(source, first.number)
    source.changes_since(MOVE, "disk", later.number)
    monkeypatch.setattr(durable, "this_boot", lambda: "the next one")
    source = started(tmp_path)
    assert not source.is_opened_by(MOVE, first.secret)
    with pytest.raises(errors.WarmCopyImpossible):
        source.changes_since(MOVE, "disk", later.number)
    anew = begin(source, later.number)
    assert anew.since is None
    assert anew.secret != first.secret
    # Otherwise the target would take it for one of which it has parts.
    assert anew.number not in (first.number, later.number)
    assert not list((tmp_path / "rounds").glob("*/disk.changes"))


def test_a_record_of_the_last_release_holds(source: Rounds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = begin(source)
    (record,) = (tmp_path / "rounds").glob("*/round.json")
    written = msgspec.json.decode(record.read_bytes())
    del written["boot"]
    record.write_bytes(msgspec.json.encode(written))
    monkeypatch.setattr(durable, "this_boot", lambda: "the next one")
    assert begin(started(tmp_path)).number == begun.number


def test_the_largest_number_is_asked_for(source: Rounds, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "randbelow", lambda limit: limit - 1)
    source.discard(MOVE)
    number = begin(source).number
    assert number > 1000
    assert offered_at.checked(f"http://host:80/disks/{MOVE}/rounds/{number}/disk/0")


def test_rounds_sync_nothing(source: Rounds) -> None:
    before = durable.syncs.total
    first = begin(source)
    Target(source).receive(0)
    begin(source, first.number)
    source.end(MOVE)
    source.discard(MOVE)
    assert durable.syncs.total == before


def test_the_reading_ends_when_its_reader_disconnects(tmp_path: Path) -> None:
    """Whatever still holds the failure, the connection to the hypervisor does not wait for that."""
    ended: list[bool] = []

    class Parts:
        def is_opened_by(self, _operation: str, _secret: str) -> bool:
            return True

        def read_part(self, *_asked: object) -> Iterator[bytes]:
            try:
                yield b"first"
                yield b"second"
            finally:
                ended.append(True)

    def gone(_piece: bytes) -> None:
        raise BrokenPipeError

    any_rounds: Any = Parts()
    any_offers: Any = None
    server = DiskServer(any_offers, any_rounds, "127.0.0.1", 0, tmp_path / "port")
    environ = {"REQUEST_METHOD": "GET", "PATH_INFO": f"/disks/{MOVE}/rounds/1/disk/0"}
    with pytest.raises(BrokenPipeError) as failure:
        server._answer(environ, lambda _status, _headers: gone)
    assert ended and failure.value is not None


@pytest.mark.parametrize("way", ["end", "discard", "discard_all", "begin anew"])
def test_a_limit_is_lifted_after_a_restart_too(
    source: Rounds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr(Hypervisor, "limits", [])
    begin(source)
    source.limit_writes(MOVE, 1000)
    assert Hypervisor.limits == [1000]
    again = started(tmp_path)
    match way:
        case "end":
            again.end(MOVE)
            again.end(MOVE)
        case "discard":
            again.discard(MOVE)
        case "discard_all":
            again.discard_all(SERVER.uuid)
        case "begin anew":
            begin(again)
            assert Hypervisor.limits == [1000]
            again.discard(MOVE)
    assert Hypervisor.limits == [1000, None]


def test_a_limit_that_failed_is_lifted_and_one_without_rounds_is_none(
    source: Rounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Hypervisor, "limits", [])
    source.limit_writes(MOVE, 1000)
    assert Hypervisor.limits == []
    begin(source)

    def fail(*_given: Any) -> None:
        raise errors.GuestFailed("Its answer is lost.")

    with monkeypatch.context() as patches, pytest.raises(errors.GuestFailed):
        patches.setattr(Hypervisor, "limit_writes", fail)
        source.limit_writes(MOVE, 1000)
    source.discard(MOVE)
    assert Hypervisor.limits == [None]
