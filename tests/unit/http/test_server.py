"""Our servers' threads get requests that have arrived: slow clients keep nobody waiting, malformed ones are answered."""

from __future__ import annotations

import io
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from causeway.http import arrived, server
from tests.unit.http.wire import (
    AMBIGUOUS,
    CHUNKED,
    ENDLESS,
    GET,
    SLOW,
    answer,
    ask,
    check_slow_clients_keep_nobody_waiting,
    connect,
    echo,
)

THREADS = 4


@pytest.fixture
def port() -> Iterator[int]:
    made = server.make_server("127.0.0.1", 0, echo, threads=THREADS, name="test")
    made.shutdown_timeout = 1
    thread = threading.Thread(target=made.serve)
    thread.start()
    yield made.bind_addr[1]
    made.stop()
    thread.join()


@pytest.mark.parametrize("sent", [*SLOW, b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: "])
def test_slow_clients_keep_nobody_waiting(port: int, sent: bytes) -> None:
    check_slow_clients_keep_nobody_waiting(port, sent, THREADS)


def test_many_clients_that_come_at_once_are_all_answered() -> None:
    """Before anybody is let in: their connections wait in the kernel, and none is reset."""
    made = server.make_server("127.0.0.1", 0, echo, threads=THREADS, name="test")
    made.shutdown_timeout = 1
    with ExitStack() as clients:
        there = [clients.enter_context(connect(made.bind_addr[1])) for _ in range(100)]
        for client in there:
            client.sendall(GET)
        thread = threading.Thread(target=made.serve)
        thread.start()
        try:
            assert {answer(client).split(b"\r\n")[0] for client in there} == {b"HTTP/1.1 200 OK"}
        finally:
            made.stop()
            thread.join()


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
def test_bodies_of_every_length_arrive(port: int, size: int) -> None:
    body = b"x" * size
    assert ask(port, b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % size, body).endswith(body)


def test_a_client_that_waits_for_100_continue_gets_it(port: int) -> None:
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


def test_requests_that_never_arrive_are_abandoned(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "DEADLINE", 0.0)
    with connect(port, b"GET / HT") as made:
        assert made.recv(100) == b""


def test_bodies_that_trickle_are_abandoned(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("causeway.http.body.PATIENCE", 0.0)
    monkeypatch.setattr("causeway.http.body.LEAST_RATE", 1e12)
    assert ask(port, CHUNKED, b"3\r\nab")[:12] in (b"HTTP/1.1 400", b"HTTP/1.1 408")


def test_too_many_connections_push_out_the_one_that_waits_longest(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MAX_WAITING", 10)
    with ExitStack() as stack:
        made = [stack.enter_context(connect(port, b"GET / HT")) for _ in range(30)]
        assert ask(port, GET).startswith(b"HTTP/1.1 200")
        assert made[0].recv(100) == b""


@contextmanager
def running(gate: Any) -> Iterator[None]:
    """Looks at connections, and raises what ended that."""
    gate._stop_requested = False
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(gate.run, 0.1)
        try:
            yield
        finally:
            gate.stop()
        done.result()


def test_a_connection_at_hand_is_not_pushed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """One look finds both a connection that is one too many and another part of one that waits."""
    monkeypatch.setattr(server, "MAX_WAITING", 1)
    made = server.make_server("127.0.0.1", 0, echo, threads=THREADS, name="test")
    gate, port = made._connections, made.bind_addr[1]
    with connect(port, GET[:5]) as waits:
        with running(gate):
            while gate._num_connections < 1:
                time.sleep(0.01)
        with connect(port, GET[:5]) as more:
            waits.sendall(GET[5:9])
            with running(gate):
                waits.sendall(GET[9:])
                assert answer(waits).startswith(b"HTTP/1.1 200")
                more.sendall(GET[5:])
                assert answer(more).startswith(b"HTTP/1.1 200")
    made.stop()


def test_what_follows_chunks_is_no_request(port: int) -> None:
    """Trailers, and chunks that nobody read."""
    with connect(port, CHUNKED + b"3\r\nabc\r\n0\r\n" + GET) as made:
        assert answer(made).endswith(b"abc")
        assert made.recv(100) == b""


def test_headers_with_underscores_are_passed_over() -> None:
    assert server._HeaderReader()(io.BytesIO(b"X_Project_Id: p\r\nX-Other: o\r\n\r\n")) == {b"X-Other": b"o"}


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
        CHUNKED.replace(b" chunked", b""),
        *AMBIGUOUS,
        b"\r\n\r\n",
    ],
)
def test_what_is_malformed_is_refused(port: int, sent: bytes) -> None:
    with connect(port, sent) as made:
        made.shutdown(socket.SHUT_WR)
        assert answer(made).startswith(b"HTTP/1.1 400")
    assert ask(port, GET).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("sent", ENDLESS)
def test_heads_without_end_are_refused(port: int, sent: bytes) -> None:
    assert ask(port, sent).startswith(b"HTTP/1.1 431")


def test_a_server_that_waits_for_connections_is_woken_to_end() -> None:
    selector = server._Selector()
    waits = threading.Thread(target=selector.select, args=(600.0,), daemon=True)
    waits.start()
    selector.wake()
    waits.join(60)
    assert not waits.is_alive()
    assert len(selector) == 0 and list(selector.connections) == []
    selector.close()
