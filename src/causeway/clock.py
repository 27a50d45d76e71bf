"""The clock of transfers. It shows real time, or it jumps, so that hours of transfers between simulated hosts take no time.

Only transfers use this clock: the links and guests of simulated hosts, the duration of rounds and live migrations, limits of
bandwidth, estimates. Leases, timeouts of calls and heartbeats always use the machine's clock.

All processes that name the same file share a jumping clock. The file holds the seconds that were skipped so far. Real time
passes too, so the clock does not multiply the time that a busy machine loses. Whoever waits skips the wait, or all but a
fraction of it. If two wait at the same time, what one skips counts for the other too, so waits that overlap do not add up.
"""

from __future__ import annotations

import fcntl
import os
import struct
import threading
import time
from pathlib import Path

_SKIPPED = struct.Struct("=d")


class Clock:
    """Shows real time."""

    def skipped(self) -> float:
        """Returns the seconds by which this clock is ahead of real time."""
        return 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self.skipped()

    def time(self) -> float:
        """Returns seconds since 1970; all processes of the machine see the same."""
        return time.time() + self.skipped()

    def wait(self, until: threading.Event, seconds: float) -> bool:
        """Waits for ``until``, at most so many ``seconds``; returns whether it is set."""
        return until.wait(max(0.0, seconds))


class JumpingClock(Clock):
    """Jumps ahead when somebody waits. ``speed``: seconds of a wait that pass in one real second; 0: all at once."""

    def __init__(self, path: Path, speed: float = 0.0) -> None:
        self._speed = speed
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b", buffering=0)
        self._lock = threading.Lock()

    def skipped(self) -> float:
        content = os.pread(self._file.fileno(), _SKIPPED.size, 0)
        found: float = _SKIPPED.unpack(content)[0] if len(content) == _SKIPPED.size else 0.0
        return found

    def wait(self, until: threading.Event, seconds: float) -> bool:
        began = self.time()
        end = began + max(0.0, seconds)
        if until.is_set() or (self._speed and until.wait(max(0.0, seconds) / self._speed)):
            # ``until`` was set early: only the time up to now counts.
            end = min(end, began + (self.time() - began) * self._speed)
        with self._lock:
            fcntl.flock(self._file, fcntl.LOCK_EX)
            try:
                # Somebody else may have skipped a part of this time.
                left = end - self.time()
                if left > 0:
                    os.pwrite(self._file.fileno(), _SKIPPED.pack(self.skipped() + left), 0)
            finally:
                fcntl.flock(self._file, fcntl.LOCK_UN)
        return until.is_set()


def of(path: str, speed: float = 0.0) -> Clock:
    """Returns the jumping clock that is kept in the file ``path``; real time if ``path`` is empty."""
    return JumpingClock(Path(path), speed) if path else Clock()
