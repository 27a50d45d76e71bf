"""How fast a host may send disks, all of them together."""

from __future__ import annotations

import threading
import time


class Bandwidth:
    """``rate``: bytes per second; 0: as fast as it goes."""

    def __init__(self, rate: float, stopping: threading.Event) -> None:
        self._rate = rate
        self._stopping = stopping
        self._lock = threading.Lock()
        self._free_at = time.monotonic()

    def take(self, size: int) -> None:
        """Returns when ``size`` bytes may be sent, or the host stops."""
        if self._rate <= 0:
            return
        with self._lock:
            now = time.monotonic()
            self._free_at = max(self._free_at, now) + size / self._rate
            pause = self._free_at - now
        self._stopping.wait(pause)
