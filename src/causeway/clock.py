"""The time that transfers take: real, or one that jumps, so that what takes hours between simulated hosts is over at once.

Only what a transfer takes goes by it: links and guests of simulated hosts, how long a round or a live migration takes, limits of
bandwidth, estimates. Leases, timeouts of calls and heartbeats go by the machine's time, always.

A clock that jumps is shared through a file, which has the seconds that were skipped so far: by all processes that name it. Real
time passes beside that, so what a busy machine does otherwise is not multiplied. Who waits skips what they would wait for,
or all but a fraction of it. Two that wait at the same time live through what the other one skips: what overlaps does not add up.
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
    """Real time."""

    def skipped(self) -> float:
        """Seconds by which this clock is ahead of real time."""
        return 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self.skipped()

    def time(self) -> float:
        """The same for all processes of the machine."""
        return time.time() + self.skipped()

    def wait(self, until: threading.Event, seconds: float) -> bool:
        """Returns when so many seconds have passed, or at once when something has happened; whether it has."""
        return until.wait(max(0.0, seconds))


class JumpingClock(Clock):
    """Nobody waits for long: time jumps. ``speed``: seconds that are waited for in one real second; 0: as many as there are."""

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
            # It has waited until now only.
            end = min(end, began + (self.time() - began) * self._speed)
        with self._lock:
            fcntl.flock(self._file, fcntl.LOCK_EX)
            try:
                # Somebody else may have skipped this time as well.
                left = end - self.time()
                if left > 0:
                    os.pwrite(self._file.fileno(), _SKIPPED.pack(self.skipped() + left), 0)
            finally:
                fcntl.flock(self._file, fcntl.LOCK_UN)
        return until.is_set()


def of(path: str, speed: float = 0.0) -> Clock:
    """The clock that is kept in a file; real time if there is none."""
    return JumpingClock(Path(path), speed) if path else Clock()
