"""Our servers' threads get requests that have arrived: slow clients keep nobody waiting, malformed ones are told."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from causeway.http import arrived, server

THREADS = 4
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


@pytest.fixture
def port() -> Iterator[int]:
    made = server.make_server("127.0.0.1", 0, echo, threads=THREADS, name="test")
    made.shutdown_timeout = 1
    thread = threading.Thread(target=made.serve)
    thread.start()
    yield made.bind_addr[1]
    made.stop()
    thread.join()


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


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET / HT",
        b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nabc",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10000000\r\n\r\nabc",
        CHUNKED + b"5\r\nab",
        GET + b"GET / HT",
    ],
)
def test_slow_clients_keep_nobody_waiting(port: int, sent: bytes) -> None:
    with ExitStack() as stack:
        for _ in range(HANGING):
            stack.enter_context(connect(port, sent))
        for _ in range(3 * THREADS):
            assert ask(port, GET).startswith(b"HTTP/1.1 200")
        assert ask(port, b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n", b"abc").endswith(b"abc")


def test_what_comes_in_pieces_is_answered_when_it_is_whole(port: int) -> None:
    with connect(port) as made:
        for byte in b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nabcde":
            made.sendall(bytes([byte]))
        assert answer(made).endswith(b"\r\n\r\nabcde")
        made.sendall(GET)
        assert answer(made).startswith(b"HTTP/1.1 200")
        made.sendall(CHUNKED + b"3\r\nabc\r\n0\r\n\r\n")
        assert answer(made).endswith(b"abc")


@pytest.mark.parametrize("size", [arrived.SHORT_BODY, arrived.SHORT_BODY + 1, 5 << 20])
def test_bodies_of_every_length(port: int, size: int) -> None:
    body = b"x" * size
    assert ask(port, b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % size, body).endswith(body)


def test_a_client_that_waits_to_be_told_to_go_on(port: int) -> None:
    with connect(port, b"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n") as made:
        assert made.recv(100).startswith(b"HTTP/1.1 100")
        made.sendall(b"abc")
        assert answer(made).endswith(b"abc")


def test_long_bodies_wait_for_one_another(port: int) -> None:
    """More of them than may be read at a time: the others are read when one has ended."""
    with ExitStack() as stack:
        made = [stack.enter_context(connect(port, CHUNKED)) for _ in range(3 * THREADS)]
        for one in made:
            one.sendall(b"3\r\nabc\r\n0\r\n\r\n")
        assert all(answer(one).endswith(b"abc") for one in made)


def test_requests_that_never_arrive_are_given_up(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "DEADLINE", 0.0)
    with connect(port, b"GET / HT") as made:
        assert made.recv(100) == b""


def test_bodies_that_trickle_are_given_up(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("causeway.http.body.PATIENCE", 0.0)
    monkeypatch.setattr("causeway.http.body.LEAST_RATE", 1e12)
    assert ask(port, CHUNKED, b"3\r\nab")[:12] in (b"HTTP/1.1 400", b"HTTP/1.1 408")


def test_too_many_connections_push_out_the_one_that_waits_longest(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MAX_WAITING", 10)
    with ExitStack() as stack:
        made = [stack.enter_context(connect(port, b"GET / HT")) for _ in range(30)]
        assert ask(port, GET).startswith(b"HTTP/1.1 200")
        assert made[0].recv(100) == b""


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\nabc",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1_0\r\n\r\n" + b"a" * 10,
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n",
        CHUNKED + b"zz\r\nabc\r\n0\r\n\r\n",
        CHUNKED + b"3\r\nabcdef\r\n0\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nRange: bytes=" + b"1" * 5000 + b"-\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost x\r\n\r\n",
        b"GARBAGE\r\n\r\n",
        b"\r\n\r\n",
    ],
)
def test_what_is_malformed_is_refused(port: int, sent: bytes) -> None:
    with connect(port, sent) as made:
        made.shutdown(socket.SHUT_WR)
        assert answer(made).startswith(b"HTTP/1.1 400")
    assert ask(port, GET).startswith(b"HTTP/1.1 200")
