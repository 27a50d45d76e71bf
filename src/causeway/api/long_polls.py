"""Requests that wait for something to change before they are answered.

Each of them holds a thread of the server, so only a few may wait at a time. Between two checks they hold neither a connection
of a database nor a lock.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

# The share of a server's threads that may wait.
LONG_POLLS = 0.25
# Seconds that a request may wait.
LONGEST = 60
# Seconds between two checks: the first pause, the factor by which pauses grow, and the longest pause.
FIRST_PAUSE, GROWTH, LONGEST_PAUSE = 0.2, 1.3, 1.0


class LongPolls:
    """Lets up to ``most`` requests wait at a time; others are answered at once."""

    def __init__(self, most: int = 4) -> None:
        self._room = threading.BoundedSemaphore(most)
        self._stopping = threading.Event()
        #: whether the process is to end, for servers that learn it in a way of their own
        self.is_over: Callable[[], bool] = lambda: False

    def stop(self) -> None:
        """Ends all waits. From here on, requests are answered at once."""
        self._stopping.set()

    def wait(self, is_new: Callable[[], bool], seconds: float) -> None:
        """Returns when ``is_new`` is true, ``seconds`` are over, or the process ends; at once if too many wait already."""
        if not self._room.acquire(blocking=False):
            return
        try:
            self._wait(is_new, time.monotonic() + min(seconds, LONGEST))
        finally:
            self._room.release()

    def _wait(self, is_new: Callable[[], bool], end: float) -> None:
        pause = FIRST_PAUSE
        while (left := end - time.monotonic()) > 0:
            if self._stopping.wait(min(pause, left)) or self.is_over() or is_new():
                return
            pause = min(pause * GROWTH, LONGEST_PAUSE)
