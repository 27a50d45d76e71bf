"""A gunicorn worker whose threads only get requests that have arrived, as in our other servers (`causeway.http`).

gunicorn itself lets a thread wait forever for the rest of a head or a body: as many slow clients as there are threads stop an
API.
"""

from __future__ import annotations

import errno
import selectors
import socket
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from gunicorn.workers import gthread

from causeway.http.arrived import DEADLINE, SHORT_BODY, Arrived, answer_too_long, judge, look, wake_at
from causeway.http.body import PATIENCE, Pace

# The share of threads that may wait for bodies that are long or have no length.
LONG_BODIES = 0.25
# Seconds for unfinished requests when the worker ends, and for clients to close a connection after the answer.
LINGER = 2.0
_TRY_AGAIN = (errno.EAGAIN, errno.EWOULDBLOCK, errno.ECONNABORTED)


class PatientSocket:
    """A socket that waits `PATIENCE` seconds where gunicorn would wait forever; bytes must keep coming."""

    def __init__(self, sock: Any) -> None:
        self.plain = sock
        self._pace = Pace()

    def begin(self) -> None:
        """Another request begins."""
        self._pace = Pace()

    def setblocking(self, flag: bool) -> None:
        self.plain.settimeout(PATIENCE if flag else 0)

    def recv(self, size: int) -> bytes:
        self._pace.before()
        data: bytes = self.plain.recv(size)
        self._pace.after(len(data))
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self.plain, name)


class Conn(gthread.TConn):  # type: ignore[misc]
    """A connection. ``linger`` is called with it if the client should close it first."""

    def __init__(self, cfg: Any, sock: Any, client: Any, server: Any, linger: Callable[[Conn], None]) -> None:
        super().__init__(cfg, PatientSocket(sock), client, server)
        self._linger = linger

    def close(self, graceful: bool = False) -> None:
        """``graceful``: lets the client close first. gunicorn would wait for it here, and serve nobody else meanwhile."""
        if graceful:
            try:
                self.sock.shutdown(socket.SHUT_WR)
            except OSError:
                pass
            else:
                self._linger(self)
                return
        super().close()


class Worker(gthread.ThreadWorker):  # type: ignore[misc]
    """Everything but `handle` runs in the worker's main thread."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._room = max(1, int(self.cfg.threads * LONG_BODIES))
        self._queue: deque[Conn] = deque()
        self._lingering: deque[Conn] = deque()
        self._needs: dict[Conn, int] = {}
        self._long: set[Conn] = set()

    def accept(self, listener: Any) -> None:
        try:
            sock, client = listener.accept()
        except OSError as error:
            if error.errno not in _TRY_AGAIN:
                raise
            return
        self.nr_conns += 1
        self.enqueue_req(Conn(self.cfg, sock, client, listener.getsockname(), self._linger))

    def enqueue_req(self, conn: Conn) -> None:
        """Gives a request that has arrived to a thread. Called with connections that are new or readable."""
        ahead = conn.parser.unreader.buf.getvalue() if conn.parser is not None else b""
        if ahead and judge(ahead) != Arrived():
            self._close(conn)
            return
        needed = self._needs.pop(conn, 0)
        found = judge(ahead) if ahead else look(conn.sock.plain, needed)
        if found.too_long:
            answer_too_long(conn.sock.plain)
            self._close(conn)
            return
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

    def _wait(self, conn: Conn, needed: int, needs: int) -> None:
        if not needed:
            conn.timeout = time.monotonic() + DEADLINE
        if needs != needed:
            wake_at(conn.sock, needs)
        self._needs[conn] = needs
        conn.sock.setblocking(False)
        self.pending_conns.append(conn)
        self.poller.register(conn.sock, selectors.EVENT_READ, partial(self.on_pending_socket_readable, conn))

    def _close(self, conn: Conn) -> None:
        self.nr_conns -= 1
        conn.close()

    def handle(self, conn: Conn) -> Any:
        conn.sock.begin()
        return super().handle(conn)

    def finish_request(self, conn: Conn, fs: Any) -> None:
        if conn in self._long:
            self._long.remove(conn)
            self._room += 1
            if self._queue:
                self.enqueue_req(self._queue.popleft())
        super().finish_request(conn, fs)

    def murder_pending(self) -> None:
        """Closes connections that took too long. They are not in order: one is appended again when a part has arrived.

        gunicorn calls it when there is no event to handle, so there is none for a connection that it closes.
        """
        now = time.monotonic()
        for group in (self.pending_conns, self._lingering):
            for conn in list(group):
                if not self.alive:
                    conn.timeout = min(conn.timeout, now + LINGER)
                if conn.timeout <= now:
                    self._close_waiting(group, conn)
        if self.nr_conns >= self.worker_connections:
            self._make_room()

    def _make_room(self) -> None:
        """Closes a connection that no thread has, of the largest group: most likely an attack."""
        group = max((self.pending_conns, self._lingering, self._queue), key=len)
        if group is self._queue and group:
            self._close(group.popleft())
        elif group:
            self._close_waiting(group, min(group, key=lambda conn: conn.timeout))

    def _close_waiting(self, group: deque[Conn], conn: Conn) -> None:
        group.remove(conn)
        self._needs.pop(conn, None)
        self.poller.unregister(conn.sock)
        self._close(conn)

    def _linger(self, conn: Conn) -> None:
        """Waits for the client to close. Closing with unread bytes would reset the connection, and lose the answer's end."""
        self.nr_conns += 1
        conn.timeout = time.monotonic() + LINGER
        conn.sock.setblocking(False)
        self._lingering.append(conn)
        self.poller.register(conn.sock, selectors.EVENT_READ, partial(self._drain, conn))

    def _drain(self, conn: Conn, sock: PatientSocket) -> None:
        try:
            ended = not sock.plain.recv(SHORT_BODY)
        except OSError:
            ended = True
        if ended:
            self._close_waiting(self._lingering, conn)


__all__ = ["Worker"]
