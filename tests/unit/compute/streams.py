"""Streams of disks in tests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def joined(pieces: Iterable[bytes | memoryview]) -> bytes:
    """Each piece is copied before the next one takes its place, which `bytes.join` would not do."""
    return b"".join([bytes(piece) for piece in pieces])


class Stream:
    """What a generator yields, as a file."""

    def __init__(self, pieces: Iterator[bytes | memoryview]) -> None:
        self._pieces, self._left = pieces, b""

    def readinto(self, buffer: memoryview, /) -> int:
        if not self._left:
            self._left = bytes(next(self._pieces, b""))
        size = min(len(self._left), len(buffer))
        buffer[:size], self._left = self._left[:size], self._left[size:]
        return size
