"""Periodic checks. All conductors make theirs; the first one to find something acts on it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from causeway import errors

LOG = logging.getLogger(__name__)


class Periodic:
    """Calls ``look`` on its own thread every ``interval`` seconds, and when it is woken; never if the interval is 0."""

    def __init__(self, name: str, interval: float, look: Callable[[], None], stopping: threading.Event) -> None:
        self.look = look
        self._name = name
        self._interval = interval
        self._stopping = stopping
        self._woken = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        if self._interval > 0:
            self._thread.start()

    def wake(self) -> None:
        """Has the thread look now."""
        self._woken.set()

    def stop(self) -> None:
        """Waits for the thread. Set ``stopping`` before."""
        self._woken.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while True:
            self._woken.wait(self._interval)
            self._woken.clear()
            if self._stopping.is_set():
                return
            try:
                self.look()
            except errors.CausewayError as failure:
                LOG.warning("%s could not look: %s %s", self._name, failure.message, failure.details)
            except Exception:
                # The boundary of the thread: it must continue, because the next look may succeed.
                LOG.exception("%s failed unexpectedly", self._name)
