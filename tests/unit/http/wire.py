"""What tests of servers send: requests as bytes, to an application that answers with what it was sent."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from typing import Any

HANGING = 200


def echo(environ: dict[str, Any], start_response: Any) -> list[bytes]:
    """Answers with what it was sent; 500 if it could not read that."""
    try:
        data = environ["wsgi.input"].read()
    except ValueError:
        start_response("500 Internal Server Error", [("Content-Length", "0")])
        return []
    start_response("200 OK", [("Content-Length", str(len(data)))])
    return [data]


def connect(port: int, *parts: bytes) -> socket.socket:
    """Each part is a segment of its own; the connection stays."""
    made = socket.create_connection(("127.0.0.1", port), timeout=60)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for part in parts:
        made.sendall(part)
    return made


def answer(made: socket.socket) -> bytes:
    """What comes until the body is whole or the connection ends."""
    data = b""
    while chunk := made.recv(65536):
        data += chunk
        head, end, body = data.partition(b"\r\n\r\n")
        length = next(
            (int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0
        )
        if end and len(body) >= length:
            break
    return data


def ask(port: int, *parts: bytes) -> bytes:
    with connect(port, *parts) as made:
        return answer(made)


GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
CHUNKED = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"

HEAD = b"POST / HTTP/1.1\r\nHost: x\r\n"

# Heads that say in two ways where the request ends, or in one that only some would read.
AMBIGUOUS = [
    HEAD + b"Content-Length: 0\r\nContent-Length: 1000\r\n\r\n",
    HEAD + b"Content-Length: 3\r\ncontent-length: 3\r\n\r\nabc",
    HEAD + b"Content-Length : 1000\r\n\r\n",
    HEAD + b"Content-Length\x0b: 1000\r\n\r\n",
    HEAD + b" Content-Length: 1000\r\n\r\n",
    HEAD + b"X: y\r\n Content-Length: 1000\r\n\r\n",
    HEAD + b"Content-Length: 0\r\n 1000\r\n\r\n",
    HEAD + b"Content-Length: +1000\r\n\r\n",
    HEAD + b"Content-Length: 1000, 1000\r\n\r\n",
    HEAD + b"Content-Length:\r\n\r\n",
    HEAD + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabc",
    HEAD + b"Transfer-Encoding : chunked\r\n\r\n",
    HEAD + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
    HEAD + b"Transfer-Encoding: chunked, identity\r\n\r\n",
    b"POST / HTTP/1.0\r\nConnection: Keep-Alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
]
# Heads that are longer than any may be, and have not ended.
ENDLESS = [b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 12000, (b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 12000)[: 64 << 10]]

# What clients that are slow have sent so far.
SLOW = [
    b"",
    b"GET / HT",
    b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nabc",
    b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10000000\r\n\r\nabc",
    CHUNKED + b"5\r\nab",
    GET + b"GET / HT",
    *AMBIGUOUS,
    *ENDLESS,
]


def check_slow_clients_keep_nobody_waiting(port: int, sent: bytes, threads: int) -> None:
    with ExitStack() as stack:
        for _ in range(HANGING):
            stack.enter_context(connect(port, sent))
        for _ in range(3 * threads):
            assert ask(port, GET).startswith(b"HTTP/1.1 200")
        assert ask(port, b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n", b"abc").endswith(b"abc")
