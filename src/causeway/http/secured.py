"""TLS for our servers, without a thread that waits: hands are shaken, and requests arrive, in the server's own thread.

cheroot's adapters shake hands in the thread that accepts connections: one client that connects and says nothing would keep all
others waiting.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from causeway.http.arrived import MAX_HEAD, SHORT_BODY, Arrived, judge

# Each message of a TLS client begins with its type; the first one is of its handshake. No method of HTTP begins so.
_HANDSHAKE = b"\x16"
_RECORD = 16 << 10
# What the application finds in the environment.
ENVIRON = {"wsgi.url_scheme": "https", "HTTPS": "on"}
# A TLS client can't read this, and knows by it that no TLS is spoken here.
NO_TLS = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
ONLY_TLS = (
    b"HTTP/1.1 426 Upgrade Required\r\nUpgrade: TLS/1.2\r\nConnection: Upgrade, close\r\nContent-Length: 0\r\n\r\n"
)


@dataclass(frozen=True)
class Tls:
    """What a server needs to speak TLS. ``context`` is called for each connection, ``required``: plain HTTP is refused."""

    context: Callable[[], ssl.SSLContext]
    required: bool = True


def begins(sock: socket.socket) -> bool | None:
    """Whether the client speaks TLS; None: it has not said anything yet."""
    try:
        return sock.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == _HANDSHAKE
    except (BlockingIOError, InterruptedError, TimeoutError):
        return None
    except OSError:
        return False


class Secured:
    """The TLS side of one connection. ``ahead``: what was decrypted, for the thread that gets the request."""

    def __init__(self, sock: socket.socket, context: ssl.SSLContext) -> None:
        sock.setblocking(False)
        self.socket = context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
        self.ahead = bytearray()
        self.was_refused = False

    def shake(self) -> bool:
        """Whether the handshake is complete. Raises OSError (so ssl.SSLError) if it failed."""
        try:
            self.socket.do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            # What the server says in it fits into the kernel's buffer: only the client is waited for.
            return False
        return True

    def refuse(self) -> None:
        """Ends what the server says. The client has time to read why, in the alert of the handshake: see `is_over`."""
        self.was_refused = True
        with suppress(OSError):
            socket.socket.shutdown(self.socket, socket.SHUT_WR)

    def is_over(self) -> bool:
        """Whether a client that was refused has closed. What it sends is discarded: unread, it would reset the connection."""
        try:
            return not socket.socket.recv(self.socket, _RECORD)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:
            return True

    def look(self) -> Arrived:
        """As `arrived.look`. What can be decrypted is, since nobody can look into it else."""
        self.socket.setblocking(False)
        while len(self.ahead) < MAX_HEAD + SHORT_BODY:
            try:
                data = self.socket.recv(_RECORD)
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                return judge(bytes(self.ahead)) if self.ahead else Arrived(needs=1)
            except OSError:
                return Arrived()
            if not data:
                return Arrived()
            self.ahead += data
            found = judge(bytes(self.ahead))
            if found.long_body or found.too_long:
                return found
        return judge(bytes(self.ahead))

    @property
    def has_more(self) -> bool:
        """Whether the client has sent more than what was read."""
        return bool(self.ahead) or self.socket.pending() > 0

    def take(self, buffer: memoryview) -> int:
        """Puts what was decrypted ahead into ``buffer``; how many bytes."""
        size = min(len(buffer), len(self.ahead))
        buffer[:size] = self.ahead[:size]
        del self.ahead[:size]
        return size


__all__ = ["ENVIRON", "NO_TLS", "ONLY_TLS", "Secured", "Tls", "begins"]
