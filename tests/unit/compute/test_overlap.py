"""Pieces of disks that are read ahead and written behind: in their order, and no failure is lost."""

from __future__ import annotations

import pytest

from causeway.compute.disks.overlap import WriteBehind, read_ahead
from causeway.virt import warm


class Disk(warm.DiskReader, warm.DiskWriter):
    """Fails at one offset."""

    def __init__(self, bad: int | None = None) -> None:
        self.done: list[tuple[str, int]] = []
        self._bad = bad

    def extents(self) -> list[tuple[int, int]]:
        return []

    def is_of_base(self, offset: int, data: bytes) -> bool:
        raise NotImplementedError

    def read(self, offset: int, length: int) -> bytes:
        self._do("read", offset)
        return bytes([offset % 256]) * length

    def write(self, offset: int, data: bytes) -> None:  # noqa: ARG002
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
        behind.write(0, b"a")
        behind.write_zeros(10, 5)
        behind.write(20, b"b")
        behind.flush()
    assert disk.done == [("write", 0), ("zeros", 10), ("write", 20), ("flush", 0)]


@pytest.mark.parametrize("flushes", [True, False])
def test_a_write_that_fails_is_reported_at_the_latest_at_the_end(flushes: bool) -> None:
    disk = Disk(bad=20)
    with pytest.raises(OSError, match="bad block"), WriteBehind(disk) as behind:
        behind.write(0, b"a")
        behind.write(20, b"b")
        if flushes:
            behind.flush()
    assert ("flush", 0) not in disk.done
