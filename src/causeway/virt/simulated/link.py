"""How a simulated host reaches others: what goes over its link takes time, of its clock."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from causeway.clock import Clock


class Link:
    """``speed``: bytes per second, which all transfers share; 0: no limit. ``latency``: seconds before anything comes."""

    def __init__(self, clock: Clock, speed: float = 0.0, latency: float = 0.0) -> None:
        self.clock = clock
        self.speed, self.latency = speed, latency
        #: set when the host stops: nobody waits on
        self.stopping = threading.Event()
        self._lock = threading.Lock()
        self._open = 0

    @contextmanager
    def transfer(self, limit: float = 0.0) -> Iterator[Transfer]:
        """One that begins now. ``limit``: bytes per second that it may have at most; 0: no limit of its own."""
        with self._lock:
            self._open += 1
        try:
            yield Transfer(self, limit)
        finally:
            with self._lock:
                self._open -= 1

    def share(self, limit: float) -> float:
        """Bytes per second that one transfer has now; 0: no limit."""
        share = self.speed / max(1, self._open)
        return min(share, limit) if share and limit else share or limit


class Transfer:
    """What one guest sends to one host."""

    def __init__(self, link: Link, limit: float) -> None:
        self._link = link
        #: bytes per second that it may have at most; 0: no limit of its own
        self.limit = limit
        self._due: float | None = None

    def take(self, size: float, until: threading.Event | None = None) -> bool:
        """Returns when so many bytes are there, or at once when the host stops or ``until`` is set; whether one of them is."""
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
        """How long that would take now."""
        speed = self._link.share(self.limit)
        return size / speed if speed else 0.0
