"""Has the system write what a file got while more of it arrives, so that little is left for the flush.

Nothing else arrives during a flush: the network would be idle for as long as the disk takes for a whole part. This promises
nothing; only the flush says that something is on the medium.
"""

from __future__ import annotations

import ctypes
import os
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType

# Bytes after which the system is asked again.
EVERY = 8 << 20
# sync_file_range(2): begin to write what is not being written already, and do not wait for it.
_WRITE = 2
_sync_file_range = getattr(ctypes.CDLL(None), "sync_file_range", None)


def _begin(descriptor: int) -> None:
    if _sync_file_range is not None:
        # Up to the end of the file. What it answers doesn't matter: a flush follows.
        _sync_file_range(descriptor, ctypes.c_int64(0), ctypes.c_int64(0), ctypes.c_uint(_WRITE))


class EarlyFlush:
    """Of one file, which somebody else writes. ``EVERY`` bytes at a time, on another thread: a slow disk makes nobody wait."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._thread = ThreadPoolExecutor(1, "early-flush")
        self._begun: Future[None] | None = None
        self._written = 0

    def __enter__(self) -> EarlyFlush:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._thread.shutdown()
        os.close(self._descriptor)

    def wrote(self, size: int) -> None:
        self._written += size
        if self._written >= EVERY and (self._begun is None or self._begun.done()):
            self._written = 0
            self._begun = self._thread.submit(_begin, self._descriptor)
