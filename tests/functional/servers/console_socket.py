"""A client of consoles, as a browser is one: a WebSocket to the URL that the API gave."""

from __future__ import annotations

import socket
import struct
from urllib.parse import parse_qs, urlsplit

import websocket

SECONDS = 90.0


class Console:
    """``url``: of a console, of whatever type. ``origin``: of the page that opens it; None: no browser does."""

    def __init__(self, url: str, *, origin: str | None = None) -> None:
        parts = urlsplit(url)
        # noVNC's pages have the path of the WebSocket as a parameter.
        path = parse_qs(parts.query).get("path", [f"?{parts.query}"])[0]
        self._socket = websocket.create_connection(
            f"ws://{parts.netloc}/{path}", timeout=SECONDS, origin=origin, suppress_origin=origin is None
        )
        self._seen = b""
        self._end: tuple[int, str] | None = None

    def type(self, text: str) -> None:
        self.send(text.encode())

    def send(self, data: bytes) -> None:
        self._socket.send_binary(data)

    def reads(self, wanted: bytes) -> bytes:
        """Everything up to and with ``wanted``."""
        while wanted not in self._seen:
            self._receive()
        found, _, self._seen = self._seen.partition(wanted)
        return found + wanted

    def read(self, size: int) -> bytes:
        while len(self._seen) < size:
            self._receive()
        found, self._seen = self._seen[:size], self._seen[size:]
        return found

    def ended(self) -> tuple[int, str]:
        """Waits for the close: its code and reason."""
        while self._end is None:
            self._take()
        return self._end

    def close(self) -> None:
        self._socket.close()

    def _receive(self) -> None:
        self._take()
        assert self._end is None, f"closed: {self._end}; read before: {self._seen!r}"

    def _take(self) -> None:
        opcode, data = self._socket.recv_data()
        if opcode == websocket.ABNF.OPCODE_CLOSE:
            (code,) = struct.unpack(">H", data[:2])
            self._end = code, data[2:].decode()
        else:
            self._seen += data


def handshake(port: int, request: str) -> bytes:
    """The first bytes of the answer to something that is sent as it stands."""
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as connection:
        connection.sendall(request.replace("\n", "\r\n").encode())
        return connection.recv(4096)
