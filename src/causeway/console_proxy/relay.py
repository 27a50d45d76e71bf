"""Passes bytes between a WebSocket and a TCP connection, until one of them or the console ends."""

from __future__ import annotations

import os
import selectors
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from websockify.websocket import WebSocketWantReadError, WebSocketWantWriteError
from websockify.websocketserver import HttpWebSocket

from causeway.model.console import Ending

# Bytes: read at a time; kept for a console that accepts no more; in one message of a client.
_PIECE, _KEPT, _LONGEST = 64 * 1024, 1024 * 1024, 4 * 1024 * 1024
# Seconds: without traffic, until a ping keeps proxies from closing the connection; for a client to answer a close.
_QUIET, _FAREWELL = 25.0, 2.0
# Seconds for which a console is kept if its guest ends while an operation of its server is running: it is likely a move.
PATIENCE = 60.0


class TooLong(OSError):
    """A client sends a message that is longer than any console accepts."""


class MeteredSocket:
    """A client's socket that raises TooLong if a message is too long: websockify reads without a limit."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._left = _LONGEST

    def recv(self, size: int) -> bytes:
        data = self._connection.recv(size)
        self._left -= len(data)
        if self._left < 0:
            raise TooLong("The message is too long.")
        return data

    def message_is_whole(self) -> None:
        self._left = _LONGEST

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


class ConsoleSocket(HttpWebSocket):  # type: ignore[misc]
    """A WebSocket whose pongs wait until nothing else is being sent."""

    def __init__(self, handler: Any) -> None:
        super().__init__(handler)
        self.to_answer: bytes | None = None

    def select_subprotocol(self, protocols: list[str]) -> str:
        # Old clients ask for it.
        return "binary" if "binary" in protocols else ""

    def handle_ping(self, data: bytes) -> None:
        self.to_answer = data


class OpenConsole:
    """An open console, as the watch sees it. `end` may be called from any thread."""

    def __init__(self) -> None:
        self.ending: Ending | None = None
        #: the guest has closed its side
        self.is_left = False
        self._bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    def end(self, ending: Ending) -> None:
        self.ending = self.ending or ending
        os.eventfd_write(self._bell, 1)

    def fileno(self) -> int:
        return self._bell

    def close(self) -> None:
        os.close(self._bell)


class Relay:
    """``on_left`` is called when the guest closes its side, and returns for how many seconds the client waits for the reason."""

    def __init__(
        self,
        client: ConsoleSocket,
        metered: MeteredSocket,
        target: socket.socket,
        console: OpenConsole,
        on_left: Callable[[], float],
    ) -> None:
        self._client, self._metered, self._target = client, metered, target
        self._console, self._on_left = console, on_left
        # What the client's connection has not accepted yet: websockify needs the same call again.
        self._unsent: tuple[Callable[[bytes], object], bytes] | None = None
        self._to_target = bytearray()
        self._until: float | None = None

    def run(self) -> Ending | None:
        """Relays until the end; returns its cause, or None if the client has closed. Raises OSError if a connection breaks."""
        self._client.setblocking(False)
        self._target.setblocking(False)
        with selectors.DefaultSelector() as selector:
            selector.register(self._console.fileno(), selectors.EVENT_READ)
            while self._console.ending is None:
                self._watch(selector)
                ready = {key.fd for key, _ in selector.select(self._wait())}
                if self._until is not None and self._unsent is None and time.monotonic() >= self._until:
                    return self._console.ending or Ending.STOPPED
                if not ready and self._unsent is None:
                    self._send(self._client.ping, b"")
                if self._client.fileno() in ready and not self._exchange_with_client():
                    return None
                if not self._console.is_left and self._target.fileno() in ready:
                    self._exchange_with_target()
        return self._console.ending

    def _wait(self) -> float:
        left = _QUIET if self._until is None else self._until - time.monotonic()
        return max(0.0, min(_QUIET, left))

    def _watch(self, selector: selectors.BaseSelector) -> None:
        """Registers what each side can do now."""
        of_client = selectors.EVENT_WRITE if self._unsent else 0
        if not self._unsent and len(self._to_target) < _KEPT:
            of_client = selectors.EVENT_READ
        of_target = selectors.EVENT_WRITE if self._to_target else 0
        if not self._unsent:
            of_target |= selectors.EVENT_READ
        if self._console.is_left:
            of_target = 0
        for side, events in ((self._client.fileno(), of_client), (self._target.fileno(), of_target)):
            with suppress(KeyError):
                selector.unregister(side)
            if events:
                selector.register(side, events)

    def _exchange_with_client(self) -> bool:
        """Sends to the client, or receives from it. False if it has closed."""
        if self._unsent is not None:
            self._send(*self._unsent)
            return True
        while True:
            try:
                message = self._client.recvmsg()
            except (WebSocketWantReadError, WebSocketWantWriteError):
                break
            if message is None:
                return False
            self._metered.message_is_whole()
            if not self._console.is_left:
                self._to_target += message
            if not self._client.pending():
                break
        if self._client.to_answer is not None:
            answer, self._client.to_answer = self._client.to_answer, None
            self._send(self._client.pong, answer)
        return True

    def _exchange_with_target(self) -> None:
        try:
            if self._to_target:
                with suppress(BlockingIOError):
                    del self._to_target[: self._target.send(self._to_target)]
            if self._unsent is not None:
                return
            data = self._target.recv(_PIECE)
        except BlockingIOError:
            return
        except ConnectionError:
            # A hypervisor that is killed does not close the connection properly.
            data = b""
        if data:
            self._send(self._client.sendmsg, data)
            return
        self._console.is_left = True
        self._to_target.clear()
        self._until = time.monotonic() + self._on_left()

    def _send(self, call: Callable[[bytes], object], data: bytes) -> None:
        try:
            call(data)
            self._unsent = None
        except WebSocketWantWriteError:
            self._unsent = (call, data)


def farewell(client: ConsoleSocket, code: int, reason: str) -> None:
    """Closes a WebSocket with a reason, and waits a little for the client to have read it."""
    end = time.monotonic() + _FAREWELL
    with suppress(OSError, WebSocketWantReadError, WebSocketWantWriteError, AttributeError):
        client.settimeout(_FAREWELL)
        client.shutdown(socket.SHUT_RDWR, code, _shortened(reason))
        # Messages before the answer don't matter any more.
        while time.monotonic() < end and client.recvmsg() is not None:
            pass


def _shortened(reason: str) -> str:
    """The reason, cut to what a close frame can have."""
    return reason.encode()[:123].decode(errors="ignore")
