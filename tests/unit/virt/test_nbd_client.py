"""Our client of NBD against servers that answer in any order, in pieces, and wrongly."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from causeway.errors import GuestFailed
from causeway.virt.libvirt.storage import nbd
from causeway.virt.libvirt.storage.nbd import NbdClient

SIZE, PIECE = 1 << 20, 4096
CONTENT = bytes(range(256)) * (SIZE // 256)
_REQUEST = struct.Struct(">IHHQQI")


class Request:
    def __init__(self, command: int, cookie: int, offset: int, data: bytes, length: int) -> None:
        self.command, self.cookie, self.offset, self.data, self.length = command, cookie, offset, data, length


#: gets requests that came, and returns what is sent for them
Answer = Callable[[list[Request]], bytes]


def data(request: Request, offset: int, content: bytes, *, done: bool) -> bytes:
    """A piece of a structured answer."""
    head = struct.pack(">IHHQI", nbd._STRUCTURED_REPLY_MAGIC, done, nbd._REPLY_DATA, request.cookie, 8 + len(content))
    return head + struct.pack(">Q", offset) + content


def hole(request: Request, offset: int, size: int) -> bytes:
    head = struct.pack(">IHHQI", nbd._STRUCTURED_REPLY_MAGIC, nbd._DONE, nbd._REPLY_HOLE, request.cookie, 12)
    return head + struct.pack(">QI", offset, size)


def simple(request: Request, content: bytes = b"", error: int = 0) -> bytes:
    return struct.pack(">IIQ", nbd._SIMPLE_REPLY_MAGIC, error, request.cookie) + content


def shown(request: Request) -> bytes:
    return CONTENT[request.offset : request.offset + request.length]


def in_two_pieces(request: Request) -> bytes:
    half = request.length // 2
    content = shown(request)
    return data(request, request.offset + half, content[half:], done=False) + data(
        request, request.offset, content[:half], done=True
    )


@contextmanager
def server(tmp_path: Path, at_once: int, answer: Answer, requests: list[Request]) -> Iterator[Path]:
    """Answers so many requests at once; what is left when the client disconnects, it does not answer."""
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(str(path))
        listening.listen()
        thread = threading.Thread(target=_serve, args=(listening, at_once, answer, requests), daemon=True)
        thread.start()
        yield path
        thread.join(60)
        assert not thread.is_alive()


def _serve(listening: socket.socket, at_once: int, answer: Answer, requests: list[Request]) -> None:
    connection, _ = listening.accept()
    with connection, connection.makefile("rb") as file:
        connection.sendall(struct.pack(">QQH", nbd._NBD_MAGIC, nbd._OPTION_MAGIC, 3))
        file.read(4)
        for info in (b"", struct.pack(">HQH", 0, SIZE, 0)):
            _magic, option, length = struct.unpack(">QII", file.read(16))
            file.read(length)
            if info:
                connection.sendall(
                    struct.pack(">QIII", nbd._OPTION_REPLY_MAGIC, option, nbd._REP_INFO, len(info)) + info
                )
            connection.sendall(struct.pack(">QIII", nbd._OPTION_REPLY_MAGIC, option, nbd._REP_ACK, 0))
        waiting: list[Request] = []
        while head := file.read(_REQUEST.size):
            _magic, _flags, command, cookie, offset, length = _REQUEST.unpack(head)
            if command == nbd._CMD_DISC:
                return
            content = file.read(length) if command == nbd._CMD_WRITE else b""
            waiting.append(Request(command, cookie, offset, content, length))
            requests.append(waiting[-1])
            if len(waiting) == at_once or command == nbd._CMD_FLUSH:
                connection.sendall(answer(waiting))
                waiting = []


@pytest.mark.parametrize("one", [lambda each: simple(each, shown(each)), in_two_pieces], ids=["simple", "in pieces"])
def test_answers_to_reads_may_come_in_any_order(tmp_path: Path, one: Callable[[Request], bytes]) -> None:
    requests: list[Request] = []
    with (
        server(tmp_path, 4, lambda found: b"".join(map(one, reversed(found))), requests) as path,
        NbdClient(path, "disk", read_size=PIECE) as client,
    ):
        assert client.size == SIZE
        assert client.read(PIECE, 8 * PIECE) == CONTENT[PIECE : 9 * PIECE]
    assert [each.offset for each in requests] == [PIECE * number for number in range(1, 9)]


def test_a_hole_is_zeros_whatever_the_buffer_held(tmp_path: Path) -> None:
    buffer = memoryview(bytearray(b"x" * PIECE))
    with (
        server(tmp_path, 1, lambda found: hole(found[0], found[0].offset, PIECE), []) as path,
        NbdClient(path, "disk") as client,
    ):
        client.read_into(0, buffer)
    assert buffer == bytes(PIECE)


@pytest.mark.parametrize(
    "lie",
    [
        lambda each: data(each, each.offset - 1, b"x", done=True),
        lambda each: data(each, each.offset + PIECE, b"x", done=True),
        lambda each: data(each, each.offset, b"x" * (PIECE + 1), done=True),
        lambda each: hole(each, each.offset + 1, PIECE),
        lambda each: hole(each, 1 << 60, 1 << 31),
        lambda each: struct.pack(">IHHQI", nbd._STRUCTURED_REPLY_MAGIC, 1, nbd._REPLY_NONE, each.cookie, 1 << 31),
        lambda each: struct.pack(">IHHQI", nbd._STRUCTURED_REPLY_MAGIC, 1, 1 << 15, each.cookie, 1 << 20) + b"x" * 9,
        lambda each: simple(each, error=5),
        lambda each: simple(Request(0, each.cookie + 7, 0, b"", 0), b"x" * PIECE),
        lambda _each: bytes(4),
    ],
    ids=["before", "behind", "too long", "long hole", "far hole", "huge", "long error", "error", "another", "no magic"],
)
def test_what_was_not_asked_for_is_refused(tmp_path: Path, lie: Callable[[Request], bytes]) -> None:
    around = bytearray(b"y" * 3 * PIECE)
    with (
        server(tmp_path, 1, lambda found: lie(found[0]), []) as path,
        NbdClient(path, "disk", timeout=5) as client,
        pytest.raises(GuestFailed),
    ):
        client.read_into(PIECE, memoryview(around)[PIECE : 2 * PIECE])
    assert around[:PIECE] == around[2 * PIECE :] == b"y" * PIECE


def test_a_flush_waits_for_the_writes_before_it(tmp_path: Path) -> None:
    requests: list[Request] = []

    def answer(found: list[Request]) -> bytes:
        return b"".join(map(simple, reversed(found)))

    with server(tmp_path, 2, answer, requests) as path, NbdClient(path, "disk") as client:
        for number in range(5):
            client.write(number * PIECE, memoryview(bytes([number]) * PIECE))
        client.write_zeros(7 * PIECE, PIECE)
        client.flush()
        assert not client._under_way
    written = [each for each in requests if each.command == nbd._CMD_WRITE]
    assert [(each.offset, each.data[:1]) for each in written] == [(each * PIECE, bytes([each])) for each in range(5)]
    assert [each.command for each in requests[5:]] == [nbd._CMD_WRITE_ZEROES, nbd._CMD_FLUSH]


def test_a_flush_fails_if_a_write_before_it_failed(tmp_path: Path) -> None:
    def answer(found: list[Request]) -> bytes:
        return b"".join(simple(each, error=28 if each.offset == PIECE else 0) for each in found)

    with server(tmp_path, 3, answer, []) as path, NbdClient(path, "disk", timeout=5) as client:
        for number in range(3):
            client.write(number * PIECE, b"x" * PIECE)
        with pytest.raises(GuestFailed) as failure:
            client.flush()
    assert "error 28" in failure.value.details
