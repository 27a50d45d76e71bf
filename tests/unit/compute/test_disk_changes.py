"""The stream in which disks travel: whatever a guest writes, whatever breaks off, both sides have the same in the end."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from causeway.compute.disks import changes
from causeway.compute.disks.copies import Copies
from causeway.errors import DiskTransferBroken, DiskTransferFailed
from causeway.model.outcomes import OperationToken
from causeway.model.warm import CopiedDisk, CopyRound
from causeway.virt.driver import BaseImage
from causeway.virt.simulated import SimulatedDriver
from causeway.virt.warm import DiskReader, DiskWriter
from tests.unit.compute.streams import joined

BLOCK, BLOCKS = 64, 24
SIZE = BLOCK * BLOCKS

# (block, what is written to it); 0: zeros
Writes = list[tuple[int, int]]
WRITES = st.lists(st.tuples(st.integers(0, BLOCKS - 1), st.integers(0, 3)), max_size=12)


class Reader(DiskReader):
    def __init__(self, content: bytes, extents: list[tuple[int, int]], base: bytes) -> None:
        self._content, self._extents, self._base = content, extents, base

    def extents(self) -> list[tuple[int, int]]:
        return self._extents

    def read_into(self, offset: int, buffer: memoryview) -> None:
        buffer[:] = self._content[offset : offset + len(buffer)]

    def is_of_base(self, offset: int, data: memoryview) -> bool:
        return self._base[offset : offset + len(data)] == data


class Writer(DiskWriter):
    """Stands on the base image."""

    def __init__(self, base: bytes) -> None:
        self.content = bytearray(base)

    def write(self, offset: int, data: bytes | memoryview) -> None:
        self.content[offset : offset + len(data)] = data

    def write_zeros(self, offset: int, length: int) -> None:
        self.write(offset, bytes(length))

    def flush(self) -> None:
        """There is no medium."""


class Disk:
    """A guest's, with what changed since the last round."""

    def __init__(self, base: bytes) -> None:
        self.base, self.content, self.changed = base, bytearray(base), set(range(BLOCKS))

    def write(self, writes: Writes) -> None:
        for block, value in writes:
            self.content[block * BLOCK : (block + 1) * BLOCK] = bytes([value]) * BLOCK
            self.changed.add(block)

    def round(self) -> Reader:
        extents = [(block * BLOCK, BLOCK) for block in sorted(self.changed)]
        self.changed = set()
        return Reader(bytes(self.content), extents, self.base)


def sent(reader: Reader, digests: changes.Digests, *, is_full: bool) -> bytes:
    return joined(changes.stream(reader, reader.extents(), digests, is_full=is_full))


def put_in(content: bytes, writer: Writer, digests: changes.Digests) -> int:
    return changes.apply(io.BytesIO(content), writer, digests, lambda *_: None)


@settings(max_examples=200)
@given(
    base=st.lists(st.integers(0, 3), min_size=BLOCKS, max_size=BLOCKS),
    rounds=st.lists(st.tuples(WRITES, st.integers(0, 4000)), min_size=1, max_size=4),
)
def test_the_target_has_what_the_source_has(base: list[int], rounds: list[tuple[Writes, int]]) -> None:
    """Each round breaks off somewhere, or not, and is sent again."""
    image = b"".join(bytes([value]) * BLOCK for value in base)
    disk, writer = Disk(image), Writer(image)
    ours, theirs = changes.Digests(SIZE, BLOCK), changes.Digests(SIZE, BLOCK)
    for number, (writes, broken_after) in enumerate(rounds):
        disk.write(writes)
        reader = disk.round()
        content = sent(reader, ours, is_full=number == 0)
        if broken_after < len(content):
            with pytest.raises(DiskTransferBroken):
                put_in(content[:broken_after], writer, theirs)
            content = sent(reader, ours, is_full=number == 0)
        put_in(content, writer, theirs)
        assert writer.content == disk.content
    assert ours.encode() == theirs.encode()


def test_what_the_base_image_has_does_not_travel() -> None:
    image = bytes([1]) * SIZE
    disk = Disk(image)
    disk.write([(3, 2)])
    writer = Writer(image)
    content = sent(disk.round(), changes.Digests(SIZE, BLOCK), is_full=True)
    assert put_in(content, writer, changes.Digests(SIZE, BLOCK)) == BLOCK


def test_zeros_are_described_and_not_sent() -> None:
    disk, writer = Disk(bytes([1]) * SIZE), Writer(bytes([1]) * SIZE)
    disk.write([(block, 0) for block in range(BLOCKS)])
    content = sent(disk.round(), changes.Digests(SIZE, BLOCK), is_full=True)
    assert len(content) < SIZE
    assert put_in(content, writer, changes.Digests(SIZE, BLOCK)) == 0
    assert writer.content == bytes(SIZE)


def flipped(at: int) -> Callable[[bytes], bytes]:
    return lambda content: content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


@pytest.mark.parametrize("place", ["header", "offset", "data", "end"])
def test_what_is_damaged_is_refused(place: str) -> None:
    disk = Disk(bytes(SIZE))
    disk.write([(3, 2), (9, 1)])
    content = sent(disk.round(), changes.Digests(SIZE, BLOCK), is_full=True)
    at = {"header": 2, "offset": 18 + 6, "data": 18 + 33 + 5, "end": len(content) - 1}[place]
    with pytest.raises(DiskTransferBroken):
        put_in(flipped(at)(content), Writer(bytes(SIZE)), changes.Digests(SIZE, BLOCK))


def test_a_round_that_the_target_never_had_is_noticed() -> None:
    """All that came was right, and something is missing all the same."""
    disk, ours, theirs = Disk(bytes(SIZE)), changes.Digests(SIZE, BLOCK), changes.Digests(SIZE, BLOCK)
    disk.write([(3, 2)])
    sent(disk.round(), ours, is_full=True)
    disk.write([(5, 1)])
    with pytest.raises(DiskTransferBroken, match="not what the source has sent"):
        put_in(sent(disk.round(), ours, is_full=False), Writer(bytes(SIZE)), theirs)


def test_what_was_sent_ahead_does_not_count() -> None:
    """The source has read both parts when the first one is asked for again."""
    disk, ours, theirs = Disk(bytes(SIZE)), changes.Digests(SIZE, BLOCK), changes.Digests(SIZE, BLOCK)
    disk.write([(3, 2), (9, 1)])
    reader, writer, half = disk.round(), Writer(bytes(SIZE)), SIZE // 3

    def part(extents: list[tuple[int, int]], end: int) -> bytes:
        return joined(changes.stream(reader, extents, ours, is_full=True, leads_to=end))

    first, second = (
        [each for each in reader.extents() if each[0] < half],
        [each for each in reader.extents() if each[0] >= half],
    )
    part(first, half)
    ahead = part(second, SIZE)
    put_in(part(first, half), writer, theirs)
    put_in(ahead, writer, theirs)
    assert writer.content == disk.content


def no_base(image_id: str) -> BaseImage:
    raise AssertionError(f"asks for image {image_id}")


def test_a_disk_without_anything_of_its_own_needs_no_part(tmp_path: Path) -> None:
    """An ephemeral disk that nobody has formatted: only the last changes make its file. One that was lost is reported."""
    copies = Copies(tmp_path / "copies", SimulatedDriver("host", tmp_path / "hypervisor"))
    token = OperationToken("0" * 36, "1" * 36, 1, "CopyWhileRunning")
    copied = CopyRound(1, None, "", "", [CopiedDisk(name, SIZE, BLOCK, 0, 0) for name in ("disk.eph0", "disk.eph1")])
    copies.begin(token, "server", copied)
    for each in copied.disks:
        copies.receive(token, copied, each, lambda *_: nullcontext(io.BytesIO()), no_base, lambda *_: None)
    disk = Disk(bytes(SIZE))
    disk.write([(3, 2)])
    last = tmp_path / "last"
    last.write_bytes(sent(disk.round(), changes.Digests(SIZE, BLOCK), is_full=False))
    made = copies.complete(token, "disk.eph0", last, no_base)
    assert made is not None
    assert made.read_bytes()[3 * BLOCK : 4 * BLOCK] == bytes([2]) * BLOCK
    (made.parent / "disk.eph1.digests").write_bytes(changes.Digests(SIZE, BLOCK).encode())
    last.touch()
    with pytest.raises(DiskTransferFailed, match="not here"):
        copies.complete(token, "disk.eph1", last, no_base)


@pytest.mark.parametrize(("first", "second"), [([], changes.CODINGS), (changes.CODINGS, [])])
def test_a_move_may_begin_with_digests_of_one_kind_and_end_with_those_of_the_other(
    first: list[str], second: list[str]
) -> None:
    """One of its hosts is upgraded meanwhile."""
    disk, writer = Disk(bytes(SIZE)), Writer(bytes(SIZE))
    ours, theirs = changes.Digests(SIZE, BLOCK), changes.Digests(SIZE, BLOCK)
    for codings, block in ((first, 1), (second, 2)):
        disk.write([(block, 3), (0, 0)])
        reader = disk.round()
        content = joined(changes.stream(reader, reader.extents(), ours, is_full=False, codings=codings))
        put_in(content, writer, theirs)
    assert writer.content == disk.content
    assert ours.encode() == theirs.encode()
