"""Data travels compressed where that pays, and only to hosts that can read it."""

from __future__ import annotations

import io
import random

import pytest
from backports import zstd

from causeway.compute.disks import changes, packing
from causeway.compute.disks.packing import PROBE_BYTES, Packer, Probe, Verdict, unpacked
from causeway.errors import DiskTransferBroken
from causeway.virt.warm import DiskReader, DiskWriter
from tests.unit.compute.streams import joined

MIB = 1 << 20
BLOCK = 64 << 10


def random_bytes(size: int) -> bytes:
    return random.Random(1).randbytes(size)


def text(size: int) -> bytes:
    """Half of it can be saved."""
    noise = random_bytes(size)
    return b"".join(noise[at : at + 1024] + b"a" * 1024 for at in range(0, size, 2048))[:size]


class Clock:
    """Time continues by what is sent and what is compressed."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Reader(DiskReader):
    def __init__(self, content: bytes) -> None:
        self.content = content

    def extents(self) -> list[tuple[int, int]]:
        return [(0, len(self.content))]

    def read_into(self, offset: int, buffer: memoryview) -> None:
        buffer[:] = self.content[offset : offset + len(buffer)]

    def is_of_base(self, offset: int, data: memoryview) -> bool:  # noqa: ARG002
        return False


class Writer(DiskWriter):
    def __init__(self, size: int) -> None:
        self.content = bytearray(size)

    def write(self, offset: int, data: bytes | memoryview) -> None:
        self.content[offset : offset + len(data)] = data

    def write_zeros(self, offset: int, length: int) -> None:
        self.write(offset, bytes(length))

    def flush(self) -> None:
        """There is no medium."""


@pytest.mark.parametrize(
    ("packed", "packing_seconds", "seconds", "waited", "pays"),
    [
        pytest.param(8, 0.08, 1.6, 1.5, True, id="a slow link"),
        pytest.param(8, 0.08, 0.05, 0.02, False, id="a fast one"),
        pytest.param(8, 0.08, 1.6, 0.02, False, id="the disk is what is slow"),
        pytest.param(16, 0.01, 1.6, 1.5, False, id="nothing is saved"),
        pytest.param(15, 0.15, 1.6, 1.5, False, id="little is saved"),
        pytest.param(8, 2.0, 1.6, 1.5, False, id="a slow processor"),
    ],
)
def test_data_is_compressed_when_it_pays(
    packed: int, packing_seconds: float, seconds: float, waited: float, pays: bool
) -> None:
    assert Probe(16 * MIB, packed * MIB, packing_seconds, seconds, waited).pays is pays


def sent(content: bytes, packer: Packer | None, clock: Clock, link: float) -> bytes:
    """``link``: seconds per byte."""

    def slow_down(size: int) -> None:
        clock.now += size * link

    digests = changes.Digests(len(content), BLOCK)
    reader = Reader(content)
    return joined(changes.stream(reader, reader.extents(), digests, is_full=True, slow_down=slow_down, packer=packer))


def received(stream: bytes, size: int) -> tuple[bytes, int, list[tuple[int, int]]]:
    writer, reported = Writer(size), []
    came = changes.apply(
        io.BytesIO(stream), writer, changes.Digests(size, BLOCK), lambda *sizes: reported.append(sizes)
    )
    return bytes(writer.content), came, reported


def test_over_a_slow_link_the_probe_goes_as_it_is_and_the_rest_compressed() -> None:
    content, clock, verdict = text(PROBE_BYTES + 8 * MIB), Clock(), Verdict()
    stream = sent(content, Packer(verdict, clock=clock), clock, 1e-6)
    arrived, came, reported = received(stream, len(content))
    assert arrived == content
    assert verdict.packs
    assert PROBE_BYTES + 4 * MIB < came < PROBE_BYTES + 5 * MIB
    # What is counted is what travelled; how far that leads on the disk is reported, too.
    assert came == sum(travelled for travelled, _of_disk in reported)
    assert len(content) == sum(of_disk for _travelled, of_disk in reported)
    assert len(stream) < came + 4096


@pytest.mark.parametrize(("content", "link"), [(text, 0.0), (random_bytes, 1e-6)])
def test_what_does_not_pay_goes_as_it_is(content: object, link: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "PROBE_BYTES", MIB)
    assert callable(content)
    data, clock, verdict = content(3 * MIB), Clock(), Verdict()
    assert received(sent(data, Packer(verdict, clock=clock), clock, link), len(data))[:2] == (data, len(data))
    assert not verdict.packs
    assert verdict.left > 0


def test_a_verdict_holds_for_the_next_parts_and_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "PROBE_BYTES", MIB)
    monkeypatch.setattr(packing, "VERDICT_BYTES", 2 * MIB)
    data, clock, verdict = text(2 * MIB), Clock(), Verdict()
    assert len(sent(data, Packer(verdict, clock=clock), clock, 1e-6)) > 1.4 * MIB
    # Not measured again: the link is fast by now.
    assert len(sent(data, Packer(verdict, clock=clock), clock, 0.0)) < 1.2 * MIB
    assert verdict.packs
    sent(data, Packer(verdict, clock=clock), clock, 0.0)
    assert not verdict.packs


def test_what_sending_takes_later_counts() -> None:
    """A part is a file before it is uploaded: writing that waits for nothing."""
    data, clock, verdict = text(PROBE_BYTES), Clock(), Verdict()
    sent(data, Packer(verdict, later=1e-6, clock=clock), clock, 0.0)
    assert verdict.packs


def test_who_does_not_know_it_gets_what_it_knows() -> None:
    data = text(MIB)
    assert len(sent(data, None, Clock(), 1.0)) > MIB


@pytest.mark.parametrize("place", ["size", "frame", "data"])
def test_what_is_damaged_is_refused(place: str) -> None:
    data = text(BLOCK)
    stream = sent(data, Packer(Verdict(packs=True, left=MIB)), Clock(), 0.0)
    assert len(stream) < BLOCK
    assert received(stream, BLOCK)[0] == data
    # A header of 18 bytes, a piece of 33, the size of what is compressed.
    at = {"size": 18 + 33, "frame": 18 + 33 + 4 + 5, "data": 18 + 33 + 4 + 3000}[place]
    with pytest.raises(DiskTransferBroken):
        received(stream[:at] + bytes([stream[at] ^ 0x40]) + stream[at + 1 :], BLOCK)


def test_what_claims_to_be_huge_takes_no_memory() -> None:
    bomb = zstd.compress(bytes(64 * MIB), level=1)
    with pytest.raises(DiskTransferBroken):
        unpacked(bomb, BLOCK)


def test_what_follows_a_good_frame_is_refused_and_takes_no_memory() -> None:
    good = zstd.compress(bytes(BLOCK), level=1)
    assert unpacked(good, BLOCK) == bytes(BLOCK)
    with pytest.raises(DiskTransferBroken):
        unpacked(good + zstd.compress(bytes(64 * MIB), level=1), BLOCK)


def test_a_frame_that_was_cut_off_is_refused() -> None:
    good = zstd.compress(text(BLOCK), level=1)
    with pytest.raises(DiskTransferBroken):
        unpacked(good[: len(good) // 2], BLOCK)
