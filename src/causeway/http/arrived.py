"""Finds out how much of a request has arrived, from the kernel's buffer, where it stays."""

from __future__ import annotations

import socket
from contextlib import suppress
from dataclasses import dataclass

from causeway.http.head import MalformedHead, body_length

# Longer heads are refused.
MAX_HEAD = 64 << 10
# Bodies up to this size must arrive before a thread gets the request; the thread reads longer ones.
SHORT_BODY = 128 << 10
# Seconds for a head with its short body to arrive, from its first byte on (on a new connection, from its beginning on).
DEADLINE = 20.0
# Most requests are shorter. Looking twice is faster than a buffer for the longest one.
_USUAL = 16 << 10
_PEEK = socket.MSG_PEEK | socket.MSG_DONTWAIT
_LINE = b"\r\n"
_END = b"\r\n\r\n"
_TOO_LONG = b"HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


@dataclass(frozen=True)
class Arrived:
    """``needs``: how many bytes must be there before the next look; 0: a thread can have the request.

    ``long_body``: the thread may wait for most of the body. ``too_long``: the head is too long; no thread should get it, because
    it would wait for the rest.
    """

    needs: int = 0
    long_body: bool = False
    too_long: bool = False


def look(sock: socket.socket, needed: int = 0) -> Arrived:
    """Looks into a socket's buffer. ``needed``: ``needs`` of the last look; if there is less now, nothing more will come."""
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
    """The same for bytes that were already read."""
    end = data.find(_END)
    if end > MAX_HEAD or (end < 0 and len(data) >= MAX_HEAD):
        return Arrived(too_long=True)
    if end < 0:
        return Arrived(needs=len(data) + 1)
    length = _body_length(data[: end + len(_LINE)])
    whole = end + len(_END) + (length or 0)
    if length is None or length > SHORT_BODY or whole > MAX_HEAD + SHORT_BODY:
        return Arrived(long_body=True)
    return Arrived(needs=whole) if len(data) < whole else Arrived()


def _body_length(head: bytes) -> int | None:
    """The body's length; None if the thread that gets the request has to find out."""
    # One empty line before a request is skipped.
    _request, _end, fields = head.removeprefix(_LINE).partition(_LINE)
    try:
        return body_length(fields)
    except MalformedHead:
        # The server refuses it. If it does not, only the threads for long bodies can get it.
        return None


def answer_too_long(sock: socket.socket) -> None:
    """Answers that the head is too long, if that is possible without waiting. The caller closes the connection."""
    answer_at_once(sock, _TOO_LONG)


def answer_at_once(sock: socket.socket, answer: bytes) -> None:
    """Answers if that is possible without waiting. The caller closes the connection."""
    with suppress(OSError):
        sock.setblocking(False)
        sock.send(answer)
        # Unread bytes would make the kernel reset the connection, and the answer might be lost.
        sock.recv(MAX_HEAD + SHORT_BODY)


def wake_at(sock: socket.socket, size: int) -> None:
    """Makes selectors report the socket when it has ``size`` bytes (usually 1), or when no more will come."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, size)


__all__ = [
    "DEADLINE",
    "MAX_HEAD",
    "SHORT_BODY",
    "Arrived",
    "answer_at_once",
    "answer_too_long",
    "judge",
    "look",
    "wake_at",
]
