"""How fast a host may send disks, all of them together."""

from __future__ import annotations

import threading

from causeway.clock import Clock


class Bandwidth:
    """``rate``: bytes per second; 0: as fast as it goes."""

    def __init__(self, rate: float, stopping: threading.Event, clock: Clock) -> None:
        self._rate = rate
        self._stopping = stopping
        self._clock = clock
        self._lock = threading.Lock()
        self._free_at = clock.monotonic()

    def take(self, size: int) -> None:
        """Returns when ``size`` bytes may be sent, or the host stops."""
        if self._rate <= 0:
            return
        with self._lock:
            now = self._clock.monotonic()
            self._free_at = max(self._free_at, now) + size / self._rate
            pause = self._free_at - now
        self._clock.wait(self._stopping, pause)
