"""TLS of our servers: what holds for plain connections holds, and no client that shakes hands slowly keeps another waiting."""

from __future__ import annotations

import os
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from causeway.compute.disks.certificates import Certificates
from causeway.http import arrived, server
from causeway.http.secured import Tls
from causeway.virt.lab.certificates import Authority
from tests.unit.http.wire import AMBIGUOUS, CHUNKED, ENDLESS, GET, HANGING, answer, connect, echo

THREADS = 4
HEAD = b"POST / HTTP/1.1\r\nHost: x\r\n"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    folder = tmp_path_factory.mktemp("pki")
    Authority(folder / "authority").ensure("here", "127.0.0.1", folder / "here")
    return Certificates(Path(folder / "here"))


@pytest.fixture(params=[True, False], ids=["required", "optional"])
def port(certificates: Certificates, request: pytest.FixtureRequest) -> Iterator[int]:
    tls = Tls(certificates.server_context, required=request.param)
    made = server.make_server("127.0.0.1", 0, echo, threads=THREADS, name="test", tls=tls)
    made.shutdown_timeout = 1
    thread = threading.Thread(target=made.serve)
    thread.start()
    yield made.bind_addr[1]
    made.stop()
    thread.join()


class Client:
    """Of a server's port. Sockets close with ``stack``."""

    def __init__(self, certificates: Certificates, port: int) -> None:
        self._context = certificates.client_context()
        self._port = port
        self.stack = ExitStack()

    def plain(self, *parts: bytes) -> socket.socket:
        return self.stack.enter_context(connect(self._port, *parts))

    def secured(self, *parts: bytes) -> ssl.SSLSocket:
        made = self.stack.enter_context(self._context.wrap_socket(self.plain(), server_hostname="127.0.0.1"))
        for part in parts:
            made.sendall(part)
        return made

    def ask(self, *parts: bytes) -> bytes:
        with self.secured(*parts) as made:
            return answer(made)

    def hello(self) -> bytes:
        """The first message of a handshake."""
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        with pytest.raises(ssl.SSLWantReadError):
            self._context.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1").do_handshake()
        return outgoing.read()


@pytest.fixture
def client(certificates: Certificates, port: int) -> Iterator[Client]:
    made = Client(certificates, port)
    with made.stack:
        yield made


@pytest.mark.parametrize("sent", ["nothing", "a byte", "half a hello", "a hello", "nonsense"])
def test_clients_that_do_not_shake_hands_keep_nobody_waiting(client: Client, sent: str) -> None:
    hello = client.hello()
    said = {
        "nothing": b"",
        "a byte": hello[:1],
        "half a hello": hello[:100],
        "a hello": hello,
        "nonsense": b"\x16" * 999,
    }
    for _ in range(HANGING):
        client.plain(said[sent])
    for _ in range(3 * THREADS):
        assert client.ask(GET).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET / HT",
        HEAD + b"Content-Length: 1000\r\n\r\nabc",
        HEAD + b"Content-Length: 10000000\r\n\r\nabc",
        CHUNKED + b"5\r\nab",
        GET + b"GET / HT",
    ],
)
def test_slow_requests_keep_nobody_waiting(client: Client, sent: bytes) -> None:
    for _ in range(5 * THREADS):
        client.secured(sent)
    for _ in range(3 * THREADS):
        assert client.ask(GET).startswith(b"HTTP/1.1 200")


def test_who_does_not_shake_hands_in_time_is_disconnected(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "DEADLINE", 0.0)
    for sent in (b"", client.hello()[:100]):
        assert client.plain(sent).recv(100) == b""


def test_requests_that_never_arrive_are_abandoned(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    made = client.secured(b"GET / HT")
    monkeypatch.setattr(server, "DEADLINE", 0.0)
    assert made.recv(100) == b""


def test_what_comes_in_pieces_is_answered_when_it_is_whole(client: Client) -> None:
    made = client.secured()
    for byte in HEAD + b"Content-Length: 5\r\n\r\nabcde":
        made.sendall(bytes([byte]))
    assert answer(made).endswith(b"\r\n\r\nabcde")
    for _ in range(3):
        made.sendall(GET)
        assert answer(made).startswith(b"HTTP/1.1 200")
    made.sendall(CHUNKED + b"3\r\nabc\r\n0\r\n\r\n")
    assert answer(made).endswith(b"abc")


@pytest.mark.parametrize("size", [arrived.SHORT_BODY, arrived.SHORT_BODY + 1, 5 << 20])
def test_bodies_of_every_length_arrive(client: Client, size: int) -> None:
    body = os.urandom(size)
    assert client.ask(HEAD + b"Content-Length: %d\r\n\r\n" % size, body).endswith(body)


def test_who_sends_requests_ahead_gets_the_first_answer_or_all(client: Client) -> None:
    made, came = client.secured(GET + GET), b""
    while chunk := made.recv(65536):
        came += chunk
        if came.count(b"HTTP/1.1 200") == 2:
            break
    assert came.count(b"HTTP/1.1 200") in (1, 2)


@pytest.mark.parametrize("sent", AMBIGUOUS)
def test_what_is_ambiguous_is_refused(client: Client, sent: bytes) -> None:
    assert client.ask(sent)[:12] in (b"HTTP/1.1 400", b"HTTP/1.0 400")


@pytest.mark.parametrize("sent", ENDLESS)
def test_heads_that_are_too_long_are_refused(client: Client, sent: bytes) -> None:
    made = client.secured()
    try:
        made.sendall(sent)
        assert answer(made)[:12] in (b"HTTP/1.1 431", b"")
    except OSError:
        # It was refused before all was sent.
        pass
    assert client.ask(GET).startswith(b"HTTP/1.1 200")


def test_plain_requests_are_refused_where_tls_is_required(client: Client, request: pytest.FixtureRequest) -> None:
    is_required = request.node.callspec.params["port"]
    assert answer(client.plain(GET))[:12] == (b"HTTP/1.1 426" if is_required else b"HTTP/1.1 200")
    made = client.plain(b"G")
    if is_required:
        assert made.recv(12) == b"HTTP/1.1 426"
    else:
        made.sendall(GET[1:])
        assert answer(made).startswith(b"HTTP/1.1 200")


def test_a_port_without_tls_says_so_at_once(certificates: Certificates) -> None:
    """And does not wait for the rest of what can't be a request."""
    made = server.make_server("127.0.0.1", 0, echo, threads=THREADS, name="test")
    made.shutdown_timeout = 1
    thread = threading.Thread(target=made.serve)
    thread.start()
    client = Client(certificates, made.bind_addr[1])
    try:
        with client.stack, pytest.raises(ssl.SSLError, match=r"(?i)wrong.version.number"):
            client.secured()
    finally:
        made.stop()
        thread.join()


def test_the_application_sees_what_was_spoken(certificates: Certificates) -> None:
    seen: list[str] = []

    def noted(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        seen.append(environ["wsgi.url_scheme"])
        return echo(environ, start_response)

    tls = Tls(certificates.server_context, required=False)
    made = server.make_server("127.0.0.1", 0, noted, threads=THREADS, name="test", tls=tls)
    made.shutdown_timeout = 1
    thread = threading.Thread(target=made.serve)
    thread.start()
    client = Client(certificates, made.bind_addr[1])
    try:
        with client.stack:
            client.ask(GET)
            answer(client.plain(GET))
    finally:
        made.stop()
        thread.join()
    assert seen == ["https", "http"]
