"""Sends heartbeats for running calls, with one thread for a whole server.

oslo.messaging starts a thread for each monitored call, and that costs more than most of the calls. Here one thread wakes when
the next heartbeat is due, and sleeps while no call needs one.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

LOG = logging.getLogger(__name__)


class Heartbeats:
    """Sends heartbeats for each running call, twice as often as its caller requires."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._wake = threading.Condition()
        # call -> when its next heartbeat is due
        self._due: dict[Any, float] = {}
        self._next_wake = 0.0
        self._thread: threading.Thread | None = None

    @contextmanager
    def during(self, incoming: Any) -> Iterator[None]:
        """While the block runs, sends heartbeats to the caller. ``incoming``: oslo.messaging's incoming message."""
        if not incoming.client_timeout:
            yield
            return
        self._add(incoming)
        try:
            yield
        finally:
            with self._wake:
                self._due.pop(incoming, None)

    def stop(self) -> None:
        """Ends the thread. A later call starts another one."""
        with self._wake:
            thread, self._thread = self._thread, None
            self._wake.notify()
        if thread is not None:
            thread.join()

    def _add(self, incoming: Any) -> None:
        due = time.monotonic() + incoming.client_timeout / 2
        with self._wake:
            self._due[incoming] = due
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=f"{self._name}-heartbeats", daemon=True)
                self._thread.start()
            if due < self._next_wake:
                self._wake.notify()

    def _run(self) -> None:
        while True:
            with self._wake:
                if self._thread is not threading.current_thread():
                    return
                now = time.monotonic()
                late = [incoming for incoming, due in self._due.items() if due <= now]
                for incoming in late:
                    self._schedule_next(incoming, now)
                if not late:
                    self._next_wake = min(self._due.values(), default=float("inf"))
                    self._wake.wait(None if not self._due else self._next_wake - now)
                    continue
            for incoming in late:
                self._beat(incoming)

    def _schedule_next(self, incoming: Any, now: float) -> None:
        """Schedules the next heartbeat of a call, unless its caller no longer waits for any (`late_answers`)."""
        if incoming.client_timeout:
            self._due[incoming] = now + incoming.client_timeout / 2
        else:
            del self._due[incoming]

    @staticmethod
    def _beat(incoming: Any) -> None:
        try:
            incoming.heartbeat()
        except Exception:
            # The messaging driver may raise anything. If it is serious, the caller's wait ends with a timeout.
            LOG.warning("A heartbeat for %s could not be sent", incoming.message.get("method"), exc_info=True)
