"""Ends what waits too long for PostgreSQL: its driver has no limit of its own for an answer.

The server limits its statements itself, and the kernel notices a machine that acknowledges nothing. A server that is frozen, or
whose disk hangs, does neither: whoever waits for its answer would wait for as long as that lasts. So each wait is noted with its
end. A thread looks every second, and shuts down the sockets of waits that are over; then the driver raises its usual error.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

# Seconds between two looks.
INTERVAL = 1.0


class Waits:
    """The waits of a process."""

    def __init__(self, *, interval: float = INTERVAL) -> None:
        self._interval = interval
        self._begin()
        # A child has no thread of its parent, and may have its lock as somebody held it.
        os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        # Of each wait: its socket's number, and when it has taken too long.
        self._ends: dict[object, tuple[int, float]] = {}
        self._thread: threading.Thread | None = None

    def limited(self, call: Callable[..., Any], seconds: float, socket_of: Callable[[Any], int]) -> Callable[..., Any]:
        """``call`` with a limit; ``socket_of`` gets its first argument."""

        def within(first: Any, *arguments: Any, **options: Any) -> Any:
            wait = object()
            try:
                number = socket_of(first)
            except Exception:  # noqa: BLE001 - the connection is closed already: what is called says so
                return call(first, *arguments, **options)
            with self._lock:
                self._ends[wait] = (number, time.monotonic() + seconds)
                if self._thread is None:
                    self._thread = threading.Thread(target=self._watch, name="overdue-databases", daemon=True)
                    self._thread.start()
            try:
                return call(first, *arguments, **options)
            finally:
                # The socket is this connection's until here: nobody else has a socket of its number.
                with self._lock:
                    del self._ends[wait]

        return within

    def _watch(self) -> None:
        while True:
            time.sleep(self._interval)
            now = time.monotonic()
            with self._lock:
                for number, end in self._ends.values():
                    if now > end:
                        _shut_down(number)


WAITS = Waits()


def limit(dialect: Any, *, statement: float, ping: float) -> None:
    """From here on what an engine of this dialect asks of its server ends within so many seconds, one way or the other."""
    for name in ("do_execute", "do_executemany", "do_execute_no_params"):
        setattr(dialect, name, WAITS.limited(getattr(dialect, name), statement, _of_cursor))
    for name in ("do_commit", "do_rollback"):
        setattr(dialect, name, WAITS.limited(getattr(dialect, name), statement, _of_connection))
    dialect.do_ping = WAITS.limited(dialect.do_ping, ping, _of_connection)


def _of_cursor(cursor: Any) -> int:
    return int(cursor.connection.fileno())


def _of_connection(connection: Any) -> int:
    # Out of a pool there is a proxy around the driver's.
    return int(getattr(connection, "driver_connection", connection).fileno())


def _shut_down(number: int) -> None:
    with suppress(OSError):
        duplicate = socket.socket(fileno=os.dup(number))
        try:
            duplicate.shutdown(socket.SHUT_RDWR)
        finally:
            duplicate.close()
