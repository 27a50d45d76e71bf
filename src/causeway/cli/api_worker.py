"""gunicorn's threads get requests that have arrived, as those of our other servers do (`causeway.http`).

gunicorn by itself lets a thread wait for the rest of a head and of a body for ever: as many slow clients as there are threads
stop an API.
"""

from __future__ import annotations

import selectors
import time
from collections import deque
from functools import partial
from typing import Any

from gunicorn.workers import gthread

from causeway.http.arrived import DEADLINE, judge, look, wake_at
from causeway.http.body import PATIENCE, Pace

# Of the threads, those that may wait for bodies that are long or have no length.
LONG_BODIES = 0.25
# Seconds that unfinished requests have when the worker is told to end.
LINGER = 2.0


class PatientSocket:
    """What gunicorn's parser reads from: bytes must keep coming."""

    def __init__(self, sock: Any) -> None:
        self._sock = sock
        self._pace = Pace()

    def recv(self, size: int) -> bytes:
        self._pace.before()
        data: bytes = self._sock.recv(size)
        self._pace.after(len(data))
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sock, name)


class Worker(gthread.ThreadWorker):  # type: ignore[misc]
    """Everything but `handle_request` runs in the worker's main thread."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._room = max(1, int(self.cfg.threads * LONG_BODIES))
        self._queue: deque[Any] = deque()
        self._needs: dict[Any, int] = {}
        self._long: set[Any] = set()

    def enqueue_req(self, conn: Any) -> None:
        """Called with what is new or readable; threads get what has arrived."""
        ahead = conn.parser.unreader.buf.getvalue() if conn.parser is not None else b""
        if ahead and (judge(ahead).needs or judge(ahead).long_body):
            self.nr_conns -= 1
            conn.close()
            return
        needed = self._needs.pop(conn, 0)
        found = judge(ahead) if ahead else look(conn.sock, needed)
        if found.needs:
            self._wait(conn, needed, found.needs)
            return
        if needed:
            wake_at(conn.sock, 1)
            conn.timeout = None
        conn.data_ready = True
        if not found.long_body:
            super().enqueue_req(conn)
        elif self._room:
            self._room -= 1
            self._long.add(conn)
            super().enqueue_req(conn)
        else:
            self._queue.append(conn)

    def _wait(self, conn: Any, needed: int, needs: int) -> None:
        if not needed:
            conn.timeout = time.monotonic() + DEADLINE
        if needs != needed:
            wake_at(conn.sock, needs)
        self._needs[conn] = needs
        conn.sock.setblocking(False)
        self.pending_conns.append(conn)
        self.poller.register(conn.sock, selectors.EVENT_READ, partial(self.on_pending_socket_readable, conn))

    def handle_request(self, req: Any, conn: Any) -> Any:
        conn.sock.settimeout(PATIENCE)
        conn.parser.unreader.sock = PatientSocket(conn.sock)
        return super().handle_request(req, conn)

    def finish_request(self, conn: Any, fs: Any) -> None:
        if conn in self._long:
            self._long.remove(conn)
            self._room += 1
            if self._queue:
                self.enqueue_req(self._queue.popleft())
        super().finish_request(conn, fs)

    def murder_pending(self) -> None:
        """Those that took too long; their order says nothing, because they come back when a part has arrived."""
        now = time.monotonic()
        for conn in list(self.pending_conns):
            if not self.alive:
                conn.timeout = min(conn.timeout, now + LINGER)
            if conn.timeout <= now:
                self.pending_conns.remove(conn)
                self._needs.pop(conn, None)
                self.poller.unregister(conn.sock)
                self.nr_conns -= 1
                conn.close()


__all__ = ["Worker"]
