"""How much of a request has arrived, by a look into the kernel's buffer: nothing is taken out of it."""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass

MAX_HEAD = 64 << 10
# Bodies up to this are waited for before a thread has the request; longer ones are read by the thread.
SHORT_BODY = 128 << 10
# Seconds for a head with its short body to arrive, from its first byte on (of a new connection: from its beginning on).
DEADLINE = 20.0
# Most requests are shorter; room for the longest takes longer to make than to look twice.
_USUAL = 16 << 10
_PEEK = socket.MSG_PEEK | socket.MSG_DONTWAIT
_END = b"\r\n\r\n"
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d{1,18})[ \t]*\r\n", re.IGNORECASE)
_STREAMED = re.compile(rb"\r\n(?:transfer-encoding|expect):", re.IGNORECASE)


@dataclass(frozen=True)
class Arrived:
    """``needs``: how many bytes there must be before it makes sense to look again; 0: a thread can have the request.

    ``long_body``: most of the body is still to come, and the thread will wait for it.
    """

    needs: int = 0
    long_body: bool = False


def look(sock: socket.socket, needed: int = 0) -> Arrived:
    """``needed``: what the last look asked for; if there is less now, nothing more will come."""
    try:
        data = sock.recv(_USUAL, _PEEK)
        if len(data) == _USUAL:
            data = sock.recv(MAX_HEAD + SHORT_BODY, _PEEK)
    except (BlockingIOError, InterruptedError, TimeoutError):
        return Arrived(needs=max(needed, 1))
    except OSError:
        return Arrived()
    return Arrived() if len(data) < max(needed, 1) else judge(data)


def judge(data: bytes) -> Arrived:
    """The same of bytes that were taken out already."""
    end = data.find(_END)
    if end < 0:
        # A head that is too long is the server's to refuse.
        return Arrived(needs=len(data) + 1) if len(data) < MAX_HEAD else Arrived()
    head = data[: end + 2]
    if _STREAMED.search(head):
        return Arrived(long_body=True)
    match = _LENGTH.search(head)
    length = int(match[1]) if match else 0
    if length > SHORT_BODY or end + len(_END) + length > MAX_HEAD + SHORT_BODY:
        return Arrived(long_body=True)
    whole = end + len(_END) + length
    return Arrived(needs=whole) if len(data) < whole else Arrived()


def wake_at(sock: socket.socket, size: int) -> None:
    """Selectors call the socket readable when it has ``size`` bytes, or when no more will come. 1 is the usual."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, size)


__all__ = ["DEADLINE", "MAX_HEAD", "SHORT_BODY", "Arrived", "judge", "look", "wake_at"]
