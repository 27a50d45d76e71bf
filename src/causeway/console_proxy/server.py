"""Listens, with a thread for each connection, and watches the open consoles."""

from __future__ import annotations

import errno
import logging
import socket
import sys
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from http.server import HTTPServer
from socketserver import ThreadingMixIn
from typing import Any

from oslo_config import cfg

from causeway import errors
from causeway.console_proxy.admission import Admission, Admitted
from causeway.console_proxy.relay import OpenConsole
from causeway.console_proxy.visit import Visit
from causeway.http.server import PortInUse
from causeway.model.console import ConsoleStanding, ConsoleToken, Ending
from causeway.rpc.conductor import ConductorClient
from causeway.store.cells import Cells
from causeway.store.consoles import standings

LOG = logging.getLogger(__name__)

# Seconds for a client to send its request, and to get the file of a page or have its console opened.
LONGEST_REQUEST = 90.0
# Seconds that connections have to end when the proxy stops.
_GRACE = 5.0
# Seconds between two looks of the thread that accepts connections at whether it is to end.
_STOP_CHECKED_EVERY = 0.1


@dataclass
class _Connection:
    socket: socket.socket
    since: float = field(default_factory=time.monotonic)
    console: OpenConsole | None = None
    token: ConsoleToken | None = None
    expires: float | None = None


class ConsoleProxy(ThreadingMixIn, HTTPServer):
    """The proxy. It listens at ``address`` and ``port`` (0: a free one). Raises OSError if it can't."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(
        self, conf: cfg.ConfigOpts, cells: Cells, conductor: ConductorClient, *, address: str, port: int
    ) -> None:
        self.conf = conf
        self.admission = Admission(conf, cells, conductor)
        self._cells = cells
        self._room = threading.BoundedSemaphore(conf.console.max_connections)
        self._lock = threading.Condition()
        self._connections: dict[int, _Connection] = {}
        self._stopping = threading.Event()
        self.address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        super().__init__((address, port), partial(Visit, self))
        self.port = int(self.socket.getsockname()[1])
        self._acceptor = threading.Thread(
            target=self.serve_forever, kwargs={"poll_interval": _STOP_CHECKED_EVERY}, name="console-proxy", daemon=True
        )
        self._watcher = threading.Thread(target=self._watch, name="console-watch", daemon=True)

    def start(self) -> None:
        self._acceptor.start()
        self._watcher.start()

    def stop(self) -> None:
        """Accepts nothing new, and ends consoles, whose users are shown why."""
        self._stopping.set()
        if self._acceptor.is_alive():
            self.shutdown()
        self.server_close()
        with self._lock:
            for connection in self._connections.values():
                if connection.console is not None:
                    connection.console.end(Ending.SHUT_DOWN)
                else:
                    _break(connection.socket)
            self._lock.wait_for(lambda: not self._connections, _GRACE)
        for thread in (self._acceptor, self._watcher):
            if thread.is_alive():
                thread.join()

    # connections, as socketserver calls it

    def server_bind(self) -> None:
        # As HTTPServer, without looking up the name of this machine.
        try:
            super(HTTPServer, self).server_bind()
        except OSError as failure:
            if failure.errno == errno.EADDRINUSE:
                raise PortInUse(str(self.server_address[0]), int(self.server_address[1])) from failure
            raise
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        # Without room, new connections wait in the kernel's queue.
        while not self._room.acquire(timeout=1.0):
            if self._stopping.is_set():
                self.shutdown_request(request)
                return
        with self._lock:
            self._connections[id(request)] = _Connection(request)
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._lock:
                self._connections.pop(id(request), None)
                self._lock.notify_all()
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002
        failure = sys.exception()
        if isinstance(failure, errors.CausewayError):
            LOG.log(failure.log_level, "A connection of %s ends: %s %s", client_address[0], failure, failure.details)
        elif isinstance(failure, OSError):
            # The network, or who is at the other end of it.
            LOG.info("A connection of %s ends: %r", client_address[0], failure)
        else:
            LOG.exception("A connection of %s ends with an unexpected error", client_address[0])

    # consoles

    @contextmanager
    def opened(self, connection: socket.socket, admitted: Admitted) -> Iterator[OpenConsole]:
        """A context in which a console is watched."""
        console = OpenConsole()
        try:
            with self._lock:
                watched = self._connections[id(connection)]
                watched.console, watched.token = console, admitted.token
                if self.conf.consoleauth.enforce_session_timeout:
                    watched.expires = time.monotonic() + admitted.seconds
                if self._stopping.is_set():
                    console.end(Ending.SHUT_DOWN)
            yield console
        finally:
            with self._lock:
                watched.console = None
            console.close()

    def look(self, tokens: Collection[ConsoleToken]) -> dict[str, ConsoleStanding]:
        """See `causeway.store.consoles.standings`."""
        return standings(self._cells, tokens)

    def _watch(self) -> None:
        while not self._stopping.wait(self.conf.console.check_interval):
            try:
                self._look_at_all()
            except errors.CausewayError as failure:
                LOG.warning("Open consoles can't be looked at: %s %s", failure.message, failure.details)
            except Exception:
                # The boundary of the thread: the next look may go better, and without the thread there would be none.
                LOG.exception("Looking at open consoles failed unexpectedly")

    def _look_at_all(self) -> None:
        now = time.monotonic()
        with self._lock:
            for connection in self._connections.values():
                if connection.console is None and now - connection.since > LONGEST_REQUEST:
                    _break(connection.socket)
                elif connection.console is not None and connection.expires is not None and now > connection.expires:
                    connection.console.end(Ending.EXPIRED)
            tokens = {one.token.token_hash: one.token for one in self._connections.values() if one.token is not None}
        if not tokens:
            return
        found = self.look(tokens.values())
        with self._lock:
            for connection in self._connections.values():
                if connection.console is None or connection.token is None:
                    continue
                standing = found.get(connection.token.token_hash, ConsoleStanding(None, is_busy=True))
                if standing.ending is not None:
                    connection.console.end(standing.ending)
                elif connection.console.is_left and not standing.is_busy:
                    connection.console.end(Ending.STOPPED)


def _break(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
