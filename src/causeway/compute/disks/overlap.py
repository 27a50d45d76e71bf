"""Overlaps the disk with the network: the next pieces are read while one is sent, and some are written while the next arrives.

Disks stand still for a moment now and then; with some pieces in memory the network does not. Their buffers are used again: new
memory costs more than copying what it holds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import cycle
from types import TracebackType

from causeway.virt.warm import DiskReader, DiskWriter

# Pieces that are read before they are sent, and that arrived before they are written.
AHEAD, BEHIND = 3, 4


def buffers(count: int, size: int) -> Iterator[memoryview]:
    """Yields so many buffers, again and again."""
    return cycle([memoryview(bytearray(size)) for _ in range(count)])


def read_ahead(reader: DiskReader, extents: Iterable[tuple[int, int]], piece: int) -> Iterator[tuple[int, memoryview]]:
    """Yields (offset, bytes) of these extents, in pieces of up to ``piece`` bytes; each is valid until the next one is wanted."""
    wanted = (
        (at, min(piece, offset + length - at))
        for offset, length in extents
        for at in range(offset, offset + length, piece)
    )
    pending: deque[tuple[int, memoryview, Future[None]]] = deque()
    kept = buffers(AHEAD + 1, piece)
    with ThreadPoolExecutor(1, "read-ahead") as thread:
        for at, size in wanted:
            buffer = next(kept)[:size]
            pending.append((at, buffer, thread.submit(reader.read_into, at, buffer)))
            if len(pending) > AHEAD:
                yield _read(pending)
        while pending:
            yield _read(pending)


def _read(pending: deque[tuple[int, memoryview, Future[None]]]) -> tuple[int, memoryview]:
    at, buffer, reading = pending.popleft()
    reading.result()
    return at, buffer


class WriteBehind:
    """Writes to a disk on another thread. What a write raises, a later call raises, or the end of the context.

    What is written must stay as it is while `BEHIND` further pieces are written.
    """

    def __init__(self, writer: DiskWriter) -> None:
        self._writer = writer
        self._thread = ThreadPoolExecutor(1, "write-behind")
        self._pending: deque[Future[None]] = deque()

    def __enter__(self) -> WriteBehind:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._settle(0)
        finally:
            self._thread.shutdown(cancel_futures=True)

    def write(self, offset: int, data: memoryview) -> None:
        self._settle(BEHIND - 1)
        self._pending.append(self._thread.submit(self._writer.write, offset, data))

    def write_zeros(self, offset: int, length: int) -> None:
        self._settle(BEHIND - 1)
        self._pending.append(self._thread.submit(self._writer.write_zeros, offset, length))

    def flush(self) -> None:
        """Returns when all that was written is on the medium."""
        self._settle(0)
        self._writer.flush()

    def _settle(self, left: int) -> None:
        """Waits until at most so many writes are pending."""
        while len(self._pending) > left:
            self._pending.popleft().result()
