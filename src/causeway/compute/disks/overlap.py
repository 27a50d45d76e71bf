"""Overlaps the disk with the network: the next piece is read while one is sent, and one is written while the next arrives. One
piece at a time is ahead or behind, so no more than two are in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType

from causeway.virt.warm import DiskReader, DiskWriter


def read_ahead(reader: DiskReader, extents: Iterable[tuple[int, int]], piece: int) -> Iterator[tuple[int, bytes]]:
    """Yields (offset, bytes) of these extents, in pieces of up to ``piece`` bytes."""
    wanted = (
        (at, min(piece, offset + length - at))
        for offset, length in extents
        for at in range(offset, offset + length, piece)
    )
    with ThreadPoolExecutor(1, "read-ahead") as thread:
        pending: tuple[int, Future[bytes]] | None = None
        for at, size in wanted:
            following = at, thread.submit(reader.read, at, size)
            if pending is not None:
                yield pending[0], pending[1].result()
            pending = following
        if pending is not None:
            yield pending[0], pending[1].result()


class WriteBehind:
    """Writes to a disk on another thread. What a write raises, the next call raises, or the end of the context."""

    def __init__(self, writer: DiskWriter) -> None:
        self._writer = writer
        self._thread = ThreadPoolExecutor(1, "write-behind")
        self._pending: Future[None] | None = None

    def __enter__(self) -> WriteBehind:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._settle()
        finally:
            self._thread.shutdown()

    def write(self, offset: int, data: bytes) -> None:
        self._settle()
        self._pending = self._thread.submit(self._writer.write, offset, data)

    def write_zeros(self, offset: int, length: int) -> None:
        self._settle()
        self._pending = self._thread.submit(self._writer.write_zeros, offset, length)

    def flush(self) -> None:
        """Returns when all that was written is on the medium."""
        self._settle()
        self._writer.flush()

    def _settle(self) -> None:
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.result()
