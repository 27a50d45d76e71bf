"""Pieces of disks that are read ahead and written behind: in their order, and no failure is lost."""

from __future__ import annotations

import pytest

from causeway.compute.disks.overlap import AHEAD, BEHIND, WriteBehind, buffers, read_ahead
from causeway.virt import warm


class Disk(warm.DiskReader, warm.DiskWriter):
    """Fails at one offset."""

    def __init__(self, bad: int | None = None) -> None:
        self.done: list[tuple[str, int]] = []
        self._bad = bad

    def extents(self) -> list[tuple[int, int]]:
        return []

    def is_of_base(self, offset: int, data: memoryview) -> bool:
        raise NotImplementedError

    def read_into(self, offset: int, buffer: memoryview) -> None:
        self._do("read", offset)
        buffer[:] = bytes([offset % 256]) * len(buffer)

    def write(self, offset: int, data: bytes | memoryview) -> None:  # noqa: ARG002
        self._do("write", offset)

    def write_zeros(self, offset: int, length: int) -> None:  # noqa: ARG002
        self._do("zeros", offset)

    def flush(self) -> None:
        self.done.append(("flush", 0))

    def _do(self, what: str, offset: int) -> None:
        if offset == self._bad:
            raise OSError(f"bad block at {offset}")
        self.done.append((what, offset))


def test_pieces_come_in_order_and_no_longer_than_wanted() -> None:
    found = [(at, len(data)) for at, data in read_ahead(Disk(), [(10, 25), (100, 10)], 10)]
    assert found == [(10, 10), (20, 10), (30, 5), (100, 10)]
    assert list(read_ahead(Disk(), [], 10)) == []


def test_what_was_read_before_a_failure_is_given_and_then_the_failure() -> None:
    pieces = read_ahead(Disk(bad=20), [(0, 40)], 10)
    assert [next(pieces)[0], next(pieces)[0]] == [0, 10]
    with pytest.raises(OSError, match="bad block"):
        next(pieces)


def test_writes_are_done_in_order_before_a_flush() -> None:
    disk = Disk()
    with WriteBehind(disk) as behind:
        behind.write(0, memoryview(b"a"))
        behind.write_zeros(10, 5)
        behind.write(20, memoryview(b"b"))
        behind.flush()
    assert disk.done == [("write", 0), ("zeros", 10), ("write", 20), ("flush", 0)]


@pytest.mark.parametrize("flushes", [True, False])
def test_a_write_that_fails_is_reported_at_the_latest_at_the_end(flushes: bool) -> None:
    disk = Disk(bad=20)
    with pytest.raises(OSError, match="bad block"), WriteBehind(disk) as behind:
        behind.write(0, memoryview(b"a"))
        behind.write(20, memoryview(b"b"))
        if flushes:
            behind.flush()
    assert ("flush", 0) not in disk.done


def test_buffers_are_used_again_when_nobody_needs_them() -> None:
    size, count = 10, 5 * (BEHIND + 1)
    pieces = read_ahead(Disk(), [(0, size * count)], size)
    read = {id(data.obj) for _at, data in pieces}
    assert len(read) == AHEAD + 1

    written: list[bytes] = []

    class Slow(Disk):
        def write(self, offset: int, data: bytes | memoryview) -> None:  # noqa: ARG002
            written.append(bytes(data))

    kept = buffers(BEHIND + 1, size)
    with WriteBehind(Slow()) as behind:
        for number in range(count):
            buffer = next(kept)
            buffer[:] = bytes([number]) * size
            behind.write(number * size, buffer)
    assert written == [bytes([number]) * size for number in range(count)]
