"""Counts the builds that failed on this host and would perhaps have succeeded on another one. Other hosts are then preferred."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from causeway import errors
from causeway.model.host_failures import may_be_of_host

# Seconds. A host that nobody builds on, because builds failed there, gets another chance.
KEPT_FOR = 1800.0


class FailedBuilds:
    """The builds that failed since one succeeded. They are no longer counted if none failed for a while, and after a restart."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._count, self._last = 0, 0.0

    @property
    def count(self) -> int:
        with self._lock:
            return self._count if self._now() - self._last < KEPT_FOR else 0

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Encloses a build."""
        try:
            yield
        except errors.ClaimRefused:
            # The host has no room, or another server was faster.
            raise
        except Exception as failure:
            if may_be_of_host(failure):
                before = self.count
                with self._lock:
                    self._count, self._last = before + 1, self._now()
            raise
        with self._lock:
            self._count = 0
