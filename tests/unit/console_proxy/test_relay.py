"""Bytes to and fro: all of them, no faster than the other side takes them, and an end with a reason."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

import pytest
from websockify.websocket import WebSocketWantReadError, WebSocketWantWriteError

from causeway.console_proxy.relay import MeteredSocket, OpenConsole, Relay, TooLong
from causeway.model.console import Ending

SECONDS = 60.0


@dataclass
class Plain:
    """Stands for a WebSocket: bytes without frames."""

    connection: socket.socket
    to_answer: bytes | None = None
    unsent: bytes = b""
    pongs: list[bytes] = field(default_factory=list)

    def fileno(self) -> int:
        return self.connection.fileno()

    def setblocking(self, yes: bool) -> None:
        self.connection.setblocking(yes)

    def pending(self) -> bool:
        return False

    def recvmsg(self) -> bytes | None:
        try:
            data = self.connection.recv(4096)
        except BlockingIOError:
            raise WebSocketWantReadError from None
        if data.startswith(b"PING"):
            self.to_answer = data[4:]
            raise WebSocketWantReadError
        return data or None

    def sendmsg(self, data: bytes) -> None:
        # As websockify: the same call again until all is through.
        left = self.unsent or data
        with contextlib.suppress(BlockingIOError):
            left = left[self.connection.send(left) :]
        self.unsent = left
        if left:
            raise WebSocketWantWriteError

    def ping(self, data: bytes) -> None:
        self.sendmsg(b"ping" + data)

    def pong(self, data: bytes) -> None:
        self.pongs.append(data)


class Between:
    """A relay that runs, with a user at one end and a guest at the other."""

    def __init__(self, pool: ThreadPoolExecutor, patience: float) -> None:
        self.user, client = socket.socketpair()
        self.guest, self.target = socket.socketpair()
        for side in (self.user, self.guest):
            side.settimeout(SECONDS)
        self.client, self.console = Plain(client), OpenConsole()
        self.left = threading.Event()

        def on_left() -> float:
            self.left.set()
            return patience

        relay = Relay(self.client, MeteredSocket(client), self.target, self.console, on_left)  # type: ignore[arg-type]
        self.ended: Future[Ending | None] = pool.submit(relay.run)

    def close(self) -> None:
        for side in (self.user, self.guest, self.client.connection, self.target):
            side.close()


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor() as made:
        yield made


@pytest.fixture
def between(pool: ThreadPoolExecutor) -> Iterator[Between]:
    made = Between(pool, patience=0.0)
    yield made
    made.console.end(Ending.SHUT_DOWN)
    made.ended.result(SECONDS)
    made.close()


def read(side: socket.socket, size: int) -> bytes:
    seen = b""
    while len(seen) < size:
        seen += side.recv(size - len(seen))
    return seen


def test_bytes_go_both_ways(between: Between) -> None:
    between.user.sendall(b"hello guest")
    assert read(between.guest, 11) == b"hello guest"
    between.guest.sendall(b"hello user")
    assert read(between.user, 10) == b"hello user"


def test_a_guest_that_writes_without_end_is_read_no_faster_than_its_user(
    between: Between, pool: ThreadPoolExecutor
) -> None:
    """Nothing piles up in the proxy, and nothing is lost."""
    written = bytes(range(256)) * 64 * 1024
    writer = pool.submit(between.guest.sendall, written)
    with pytest.raises(TimeoutError):
        writer.result(0.5)
    assert read(between.user, len(written)) == written
    writer.result(SECONDS)


def test_a_user_who_writes_without_end_is_read_no_faster_than_the_guest(
    between: Between, pool: ThreadPoolExecutor
) -> None:
    written = bytes(range(256)) * 64 * 1024
    writer = pool.submit(between.user.sendall, written)
    with pytest.raises(TimeoutError):
        writer.result(0.5)
    assert read(between.guest, len(written)) == written
    writer.result(SECONDS)


def test_the_relay_ends_when_the_user_goes(between: Between) -> None:
    between.user.close()
    assert between.ended.result(SECONDS) is None


def test_the_relay_ends_when_somebody_ends_it(between: Between) -> None:
    between.console.end(Ending.MOVED)
    between.console.end(Ending.STOPPED)
    assert between.ended.result(SECONDS) is Ending.MOVED


def test_the_relay_ends_when_the_guest_goes(between: Between) -> None:
    between.guest.sendall(b"bye")
    between.guest.close()
    assert between.ended.result(SECONDS) is Ending.STOPPED
    assert read(between.user, 3) == b"bye"


def test_a_guest_that_is_likely_moved_is_waited_for(pool: ThreadPoolExecutor) -> None:
    between = Between(pool, patience=SECONDS)
    between.guest.close()
    assert between.left.wait(SECONDS)
    # What is typed meanwhile goes nowhere, and the user may leave.
    between.user.sendall(b"hello?")
    assert not between.ended.done()
    between.console.end(Ending.MOVED)
    assert between.ended.result(SECONDS) is Ending.MOVED
    between.close()


def test_pings_are_answered(between: Between) -> None:
    between.user.sendall(b"PINGabc")
    between.user.sendall(b"")
    between.guest.sendall(b"x")
    read(between.user, 1)
    between.user.close()
    between.ended.result(SECONDS)
    assert between.client.pongs == [b"abc"]


def test_a_message_may_not_be_longer_than_any_console_takes() -> None:
    mine, other = socket.socketpair()
    with mine, other:
        metered = MeteredSocket(mine)
        metered._left = 4
        other.sendall(b"abcd")
        assert metered.recv(10) == b"abcd"
        other.sendall(b"e")
        with pytest.raises(TooLong):
            metered.recv(10)
        metered.message_is_whole()
        other.sendall(b"f")
        assert metered.recv(10) == b"f"
