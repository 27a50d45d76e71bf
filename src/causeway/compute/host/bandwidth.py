"""Limits the rate at which a host sends disks, all of them together or one transfer alone."""

from __future__ import annotations

import threading

from causeway.clock import Clock


class Bandwidth:
    """``rate``: bytes per second; 0 for no limit. ``longest``: the most seconds that a call waits."""

    def __init__(
        self, rate: float, stopping: threading.Event, clock: Clock, longest: float = threading.TIMEOUT_MAX
    ) -> None:
        self._rate = rate
        self._stopping = stopping
        self._clock = clock
        self._longest = longest
        self._lock = threading.Lock()
        self._free_at = clock.monotonic()

    def become(self, rate: float, since: float, taken: int) -> None:
        """Sets the ``rate``.

        If there was no limit before, it also applies to the bytes ``taken`` ``since`` a time of the clock.
        """
        with self._lock:
            if rate > 0 and self._rate <= 0:
                self._free_at = since + taken / rate
            self._rate = rate

    def take(self, size: int) -> None:
        """Returns when ``size`` bytes may be sent, or the host stops."""
        if self._rate <= 0:
            return
        with self._lock:
            now = self._clock.monotonic()
            self._free_at = max(self._free_at, now) + size / self._rate
            pause = self._free_at - now
        self._clock.wait(self._stopping, min(pause, self._longest))
