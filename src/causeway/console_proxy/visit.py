"""One connection: a file of a page, or a console."""

from __future__ import annotations

import logging
import socket
from collections.abc import Collection
from contextlib import AbstractContextManager
from http.server import BaseHTTPRequestHandler
from typing import Any, Protocol

from oslo_config import cfg
from websockify.websocketserver import WebSocketRequestHandlerMixIn

from causeway import errors
from causeway.console_proxy import pages
from causeway.console_proxy.admission import BY_RULE, Admission, Admitted, Refused, token_of
from causeway.console_proxy.relay import PATIENCE, ConsoleSocket, MeteredSocket, OpenConsole, Relay, farewell
from causeway.model.console import ConsoleStanding, ConsoleToken

LOG = logging.getLogger(__name__)

# Seconds until a peer that is gone without closing is noticed.
_DEAD_AFTER = 60


class Proxy(Protocol):
    """What a visit needs of the proxy that it comes to."""

    conf: cfg.ConfigOpts
    admission: Admission

    def opened(self, connection: socket.socket, admitted: Admitted) -> AbstractContextManager[OpenConsole]:
        """A context in which a console is watched."""

    def look(self, tokens: Collection[ConsoleToken]) -> dict[str, ConsoleStanding]:
        """Hash of a token -> the standing of its console."""


class Visit(WebSocketRequestHandlerMixIn, BaseHTTPRequestHandler):  # type: ignore[misc]
    """As websockify and http.server call it: `do_GET` for files, `handle_websocket` for consoles."""

    SocketClass = ConsoleSocket
    # Seconds for a client to send, or to take, the next bytes. One request for each connection.
    timeout = 20
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "Causeway", ""

    def __init__(self, proxy: Proxy, *connection: Any) -> None:
        """Serves the request, in the thread of the caller."""
        self._proxy = proxy
        super().__init__(*connection)

    def do_GET(self) -> None:
        self._serve(with_content=True)

    def do_HEAD(self) -> None:
        self._serve(with_content=False)

    def _serve(self, *, with_content: bool) -> None:
        self.close_connection = True
        if self.path.startswith("//"):
            self.send_error(400)
            return
        found = pages.read(self._proxy.conf, self.path)
        if found is None:
            self.send_error(
                404, explain="There is no such page. noVNC is Debian's package novnc ([console] novnc_path)."
            )
            return
        content, kind = found
        self.send_response(200)
        for name, value in pages.HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Connection", "close")
        self.end_headers()
        if with_content:
            self.wfile.write(content)

    def end_headers(self) -> None:
        for name, value in pages.frame_headers(self._proxy.conf).items():
            self.send_header(name, value)
        super().end_headers()

    def handle_upgrade(self) -> None:
        self.close_connection = True
        self._metered = MeteredSocket(self.request)
        self.request = self._metered
        super().handle_upgrade()

    def handle_websocket(self) -> None:
        """Serves a console. The upgrade was answered before any check, so that the page can show why it is refused."""
        try:
            admitted = self._proxy.admission.admit(
                token_of(self.path, self.headers.get("Cookie")),
                self.headers.get("Origin"),
                self.headers.get("Host"),
                self.headers.get("X-Forwarded-Proto"),
            )
            target = self._proxy.admission.connect(admitted.token)
        except Refused as refused:
            farewell(self.request, refused.code, refused.reason)
            return
        with target:
            for side in (self._metered, target):
                side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                side.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                side.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _DEAD_AFTER * 1000)
            self._relay(admitted, target)

    def _relay(self, admitted: Admitted, target: socket.socket) -> None:
        token = admitted.token
        server = token.instance_uuid
        with self._proxy.opened(self.connection, admitted) as console:
            LOG.info(
                "A %s console of server %s is opened for %s", token.console_type.value, server, self.client_address[0]
            )
            try:
                relay = Relay(self.request, self._metered, target, console, lambda: self._patience(admitted, console))
                ending = relay.run()
            except OSError as failure:
                LOG.info("A console of server %s broke: %s", server, failure)
                return
            LOG.info("A console of server %s ends: %s", server, ending.name if ending is not None else "its user left")
            if ending is not None:
                farewell(self.request, BY_RULE, ending.sentence(server))

    def _patience(self, admitted: Admitted, console: OpenConsole) -> float:
        """Seconds to wait when a guest has ended: `PATIENCE` during an operation of its server, which is likely a move."""
        try:
            standing = self._proxy.look([admitted.token]).get(admitted.token.token_hash)
        except errors.CausewayError as failure:
            LOG.warning("Server %s can't be looked at: %s", admitted.token.instance_uuid, failure.message)
            return PATIENCE
        if standing is None:
            return PATIENCE
        if standing.ending is not None:
            console.end(standing.ending)
        return PATIENCE if standing.is_busy else 0.0

    def finish(self) -> None:
        try:
            super().finish()
        except OSError as failure:
            LOG.debug("A client left: %s", failure)

    def log_message(self, format: str, *arguments: Any) -> None:
        """URLs have tokens in them."""
        LOG.debug("%s: %s", self.client_address[0], (format % arguments).partition("?")[0])
