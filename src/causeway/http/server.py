"""cheroot's server, whose threads only get requests that have arrived."""

from __future__ import annotations

import errno
import io
import logging
import os
import selectors
import socket
import ssl
import threading
import time
from collections import deque
from collections.abc import Iterator
from typing import Any

from cheroot import connections, wsgi
from cheroot import server as cheroot_server

from causeway.http.arrived import DEADLINE, MAX_HEAD, Arrived, answer_at_once, answer_too_long, judge, look, wake_at
from causeway.http.body import PATIENCE, Pace
from causeway.http.head import body_length
from causeway.http.secured import ENVIRON, NO_TLS, ONLY_TLS, Secured, Tls, begins
from causeway.http.strict import WsgiApp, strict

LOG = logging.getLogger(__name__)

# Connections without a thread: idle ones, and those whose request has not arrived. If there are more, the oldest are closed.
MAX_WAITING = 600
# Seconds that an idle connection is kept.
KEEP = 120
# The share of threads that may read long bodies at the same time.
LONG_BODIES = 0.5


# cheroot's stubs don't have all that is used here.
_WsgiServer: Any = wsgi.Server
_HttpConnection: Any = cheroot_server.HTTPConnection
_HttpRequest: Any = cheroot_server.HTTPRequest
_CherootReader: Any = cheroot_server.HeaderReader
_Manager: Any = connections.ConnectionManager
_CherootSelector: Any = connections._ThreadsafeSelector


class PortInUse(OSError):
    """Somebody listens there already."""

    def __init__(self, address: str, port: int) -> None:
        super().__init__(errno.EADDRINUSE, f"Port {port} of {address} is in use")
        self.port = port


def make_server(address: str, port: int, app: WsgiApp, *, threads: int, name: str, tls: Tls | None = None) -> Any:
    """Listens when this returns; ``serve()`` serves. ``tls``: without it only plain HTTP is spoken. Raises PortInUse, OSError."""
    server = _Server((address, port), strict(app), numthreads=threads, server_name=name)
    server.tls = tls
    server.ConnectionClass = _Connection
    server.timeout = PATIENCE
    server.nodelay = True
    # Connections that are not accepted yet. If there are more, clients try again after a second.
    server.request_queue_size = 128
    server.keep_alive_conn_limit = MAX_WAITING
    server.max_request_header_size = MAX_HEAD
    try:
        server.prepare()
    except OSError as failure:
        # cheroot keeps only the text of the system's error.
        if os.strerror(errno.EADDRINUSE) in str(failure):
            raise PortInUse(address, port) from failure
        raise
    return server


class _Server(_WsgiServer):  # type: ignore[misc]
    tls: Tls | None = None

    def prepare(self) -> None:
        super().prepare()
        made: Any = self._connections
        made._selector.close()
        self._connections: Any = _Gate(self, max(1, int(self.requests.min * LONG_BODIES)))

    def process_conn(self, conn: _Connection) -> None:
        """Gives a request that has arrived to a thread. Called with connections that are readable."""
        if self._connections.admit(conn):
            super().process_conn(conn)

    def let_in(self, conn: _Connection) -> None:
        super().process_conn(conn)


# From so many bytes on, a piece of a body is not copied.
_LARGE = 1 << 16


class _Raw(socket.SocketIO):
    """A socket whose bytes must keep coming."""

    def __init__(self, sock: socket.socket, mode: str, secured: Secured | None = None) -> None:
        super().__init__(sock, mode)  # type: ignore[arg-type]
        self.pace = Pace()
        self._secured = secured

    def readinto(self, buffer: Any) -> int | None:
        if self._secured is not None and self._secured.ahead:
            return self._secured.take(memoryview(buffer))
        self.pace.before()
        size = super().readinto(buffer)
        self.pace.after(size or 0)
        return size


class _HeaderReader(_CherootReader):  # type: ignore[misc]
    """Refuses malformed heads. cheroot keeps the last of several equal headers and accepts what is nearly a header."""

    def __call__(self, rfile: Any, hdict: dict[bytes, bytes] | None = None) -> dict[bytes, bytes]:
        lines = []
        while (line := rfile.readline()).strip(b"\r\n"):
            lines.append(line)
        fields = b"".join(lines)
        body_length(fields)
        read: dict[bytes, bytes] = super().__call__(io.BytesIO(fields + line), hdict)
        return read

    def _allow_header(self, key_name: bytes) -> bool:
        """Whether a header has no underscore: to applications X_Forwarded_For is the same as a proxy's X-Forwarded-For."""
        return b"_" not in key_name


class _Request(_HttpRequest):  # type: ignore[misc]
    header_reader = _HeaderReader()

    def read_request_headers(self) -> bool:
        """Whether the headers are well-formed; if not, the request was answered."""
        if not super().read_request_headers():
            return False
        if b"Transfer-Encoding" in self.inheaders:
            if self.response_protocol != "HTTP/1.1":
                self.simple_response("400 Bad Request", "HTTP/1.0 has no Transfer-Encoding.")
                return False
            # cheroot would take trailers, and chunks that the application did not read, for the next request.
            self.close_connection = True
        return True

    def write(self, chunk: bytes | memoryview) -> None:
        """Sends large pieces without a copy: cheroot copies them, and the rest again for each part that the socket accepts."""
        if len(chunk) < _LARGE:
            super().write(chunk)
            return
        parts = [f"{len(chunk):x}\r\n".encode(), chunk, b"\r\n"] if self.chunked_write else [chunk]
        for part in parts:
            view, sent = memoryview(part), 0
            while sent < len(view):
                # The socket's timeout is for each part: slow clients are served, silent ones are not.
                sent += self.conn.socket.send(view[sent:])
            self.conn.wfile.bytes_written += len(part)


class _Connection(_HttpConnection):  # type: ignore[misc]
    """``since``: when the request that has not arrived began; None: there is none. ``needs``: see `Arrived`.

    ``is_settled``: it is known whether this is TLS, and if so, the handshake is complete.
    """

    RequestHandlerClass = _Request
    socket: Any

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.rfile._raw = _Raw(self.socket, "rb")
        self.since: float | None = time.monotonic()
        self.needs = 0
        self.long_body = False
        self.is_settled = False
        self.secured: Secured | None = None

    def secure(self, context: ssl.SSLContext) -> Secured:
        """TLS from now on. Raises OSError."""
        self.secured = made = Secured(self.socket, context)
        self.socket = made.socket
        self.rfile._raw = _Raw(made.socket, "rb", made)
        self.wfile._raw = socket.SocketIO(made.socket, "wb")
        self.ssl_env = ENVIRON
        return made

    def look(self) -> Arrived:
        if self.secured is None:
            return look(self.socket, self.needs)
        found = self.secured.look()
        if not found.needs:
            self.socket.settimeout(self.server.timeout)
        return found

    def wait_for(self, size: int) -> None:
        """The selector calls with so many bytes; 0: with any. (What is encrypted has another size.)"""
        if size != self.needs:
            self.needs = size
            if self.secured is None:
                wake_at(self.socket, size or 1)

    def communicate(self) -> bool:
        self.rfile.raw.pace = Pace()
        try:
            kept: bool = super().communicate()
        finally:
            if self.long_body:
                self.long_body = False
                self.server._connections.long_body_ended()
        return kept


class _Selector(_CherootSelector):  # type: ignore[misc]
    """Remembers what it returned last, which cheroot still works on, so that this is not closed. Can be woken."""

    def __init__(self) -> None:
        super().__init__()
        self.at_hand: set[Any] = set()
        self._woken, self._waker = socket.socketpair()
        self.register(self._woken, selectors.EVENT_READ, data=None)

    def __len__(self) -> int:
        return int(super().__len__()) - 1

    @property
    def connections(self) -> Iterator[tuple[int, Any]]:
        return ((fd, conn) for fd, conn in super().connections if conn is not None)

    def select(self, timeout: float | None = None) -> list[tuple[int, Any]]:
        found = [(fd, conn) for fd, conn in super().select(timeout) if conn is not None]
        self.at_hand = {conn for _fd, conn in found}
        return found

    def wake(self) -> None:
        """Makes `select` return at once, from now on."""
        self._waker.send(b"\0")

    def close(self) -> None:
        super().close()
        self._woken.close()
        self._waker.close()


class _Gate(_Manager):  # type: ignore[misc]
    """Keeps connections until their requests have arrived. All but `long_body_ended` and `put` runs in the server's thread."""

    def __init__(self, server: _Server, long_bodies: int) -> None:
        super().__init__(server)
        self._selector.close()
        self._selector: Any = _Selector()
        self._selector.register(server.socket.fileno(), selectors.EVENT_READ, data=server)
        self._room = long_bodies
        self._queue: deque[_Connection] = deque()
        self._lock = threading.Lock()

    def _from_server_socket(self, server_socket: socket.socket) -> None:
        try:
            conn = super()._from_server_socket(server_socket)
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE):
                raise
            LOG.warning("No file descriptor is left for a connection: closing the one that waits longest")
            self._close_one()
            return
        if conn is None:
            return
        if self._num_connections >= MAX_WAITING:
            self._close_one()
        self._wait(conn)

    def stop(self) -> None:
        """Stops at once: wakes the server's thread, which checks only every half second whether to end."""
        self._stop_requested = True
        self._selector.wake()
        super().stop()

    def admit(self, conn: _Connection) -> bool:
        """Whether a thread can have the connection now; if not, it is kept here, or closed."""
        if not conn.is_settled and not self._settle(conn):
            return False
        if not conn.rfile.has_data():
            found = conn.look()
            if found.too_long:
                answer_too_long(conn.socket)
                conn.close()
                return False
            if found.needs:
                conn.since = conn.since or time.monotonic()
                conn.wait_for(found.needs)
                self._wait(conn)
                return False
            conn.long_body = found.long_body
        conn.wait_for(0)
        conn.since = None
        if not conn.long_body:
            return True
        with self._lock:
            if self._room == 0:
                conn.last_used = time.time()
                self._queue.append(conn)
                return False
            self._room -= 1
            return True

    def _settle(self, conn: _Connection) -> bool:
        """Finds out whether the client speaks TLS, and shakes hands. False: it is waited for, or was refused."""
        tls, secured = self.server.tls, conn.secured
        if secured is None:
            speaks_tls = begins(conn.socket)
            if speaks_tls is None:
                self._wait(conn)
                return False
            if not speaks_tls and (tls is None or not tls.required):
                conn.is_settled = True
                return True
            if tls is None or not speaks_tls:
                answer_at_once(conn.socket, NO_TLS if tls is None else ONLY_TLS)
                conn.close()
                return False
        elif secured.was_refused:
            if secured.is_over():
                conn.close()
            else:
                self._wait(conn)
            return False
        try:
            secured = secured or conn.secure(tls.context())
            conn.is_settled = secured.shake()
        except OSError as failure:
            self._refuse(conn, failure)
            return False
        if not conn.is_settled:
            self._wait(conn)
        return conn.is_settled

    def _refuse(self, conn: _Connection, failure: OSError) -> None:
        """The client sees why in an alert, if it was one."""
        if conn.secured is None or not isinstance(failure, ssl.SSLError) or isinstance(failure, ssl.SSLEOFError):
            LOG.info("%s broke off a TLS handshake: %s", conn.remote_addr, failure)
            conn.close()
            return
        LOG.warning("%s was refused: its TLS handshake failed: %s", conn.remote_addr, failure)
        conn.secured.refuse()
        self._wait(conn)

    def long_body_ended(self) -> None:
        with self._lock:
            if not self._queue:
                self._room += 1
                return
            following = self._queue.popleft()
        self.server.let_in(following)

    def put(self, conn: _Connection) -> None:
        """Accepts an answered connection. It is closed if a part, but not all, of its next request was read already."""
        ahead = conn.rfile.peek() if conn.rfile.has_data() else b""
        if (ahead and judge(ahead) != Arrived()) or (conn.secured is not None and conn.secured.has_more):
            conn.close()
            return
        super().put(conn)

    def _wait(self, conn: _Connection) -> None:
        conn.last_used = time.time()
        self._selector.register(conn.socket.fileno(), selectors.EVENT_READ, data=conn)

    def _waiting(self) -> list[_Connection]:
        return [conn for _fd, conn in self._selector.connections if conn is not self.server]

    def _close_one(self) -> None:
        """Closes the connection whose request takes longest to arrive, or if none is arriving, the one idle for longest."""
        waiting = [conn for conn in self._waiting() if conn not in self._selector.at_hand]
        if waiting:
            self._close(min(waiting, key=lambda conn: (conn.since is None, conn.since or conn.last_used)))

    def _close(self, conn: _Connection) -> None:
        self._selector.unregister(conn.socket.fileno())
        conn.close()

    def _expire(self, threshold: float) -> None:
        late = time.monotonic() - DEADLINE
        for conn in self._waiting():
            if (conn.since is not None and conn.since < late) or conn.last_used < time.time() - KEEP:
                self._close(conn)
        with self._lock:
            while self._queue and self._queue[0].last_used < threshold:
                self._queue.popleft().close()

    def close(self) -> None:
        with self._lock:
            while self._queue:
                self._queue.popleft().close()
        super().close()


__all__ = ["make_server"]
