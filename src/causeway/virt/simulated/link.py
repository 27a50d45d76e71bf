"""The link of a simulated host to other hosts. What is sent over it takes time, on the host's clock."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from causeway.clock import Clock


class Link:
    """``speed``: bytes per second, shared by all transfers; 0: no limit. ``latency``: seconds until the first byte arrives."""

    def __init__(self, clock: Clock, speed: float = 0.0, latency: float = 0.0) -> None:
        self.clock = clock
        self.speed, self.latency = speed, latency
        #: set when the host stops: nothing waits any longer
        self.stopping = threading.Event()
        self._lock = threading.Lock()
        self._open = 0

    @contextmanager
    def transfer(self, limit: float = 0.0) -> Iterator[Transfer]:
        """A transfer that begins now. ``limit``: its most bytes per second; 0: no limit of its own."""
        with self._lock:
            self._open += 1
        try:
            yield Transfer(self, limit)
        finally:
            with self._lock:
                self._open -= 1

    def share(self, limit: float) -> float:
        """Bytes per second that one transfer has now, given its own ``limit``; 0: no limit."""
        share = self.speed / max(1, self._open)
        return min(share, limit) if share and limit else share or limit


class Transfer:
    """Data that one guest sends to one host."""

    def __init__(self, link: Link, limit: float) -> None:
        self._link = link
        #: the most bytes per second; 0: no limit of its own
        self.limit = limit
        self._due: float | None = None

    def take(self, size: float, until: threading.Event | None = None) -> bool:
        """Waits until ``size`` bytes have arrived. True: ended early, because ``until`` was set (without it: the host stops)."""
        link = self._link
        if self._due is None:
            self._due = link.clock.monotonic() + link.latency
        speed = link.share(self.limit)
        if speed:
            self._due += size / speed
        left = self._due - link.clock.monotonic()
        stopped = until or link.stopping
        return link.clock.wait(stopped, left) if left > 0 else stopped.is_set()

    def seconds(self, size: float) -> float:
        """How many seconds ``size`` bytes would take now."""
        speed = self._link.share(self.limit)
        return size / speed if speed else 0.0
