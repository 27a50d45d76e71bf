"""A client of the NBD protocol: as much of it as warm copies need and QEMU's servers have.

libnbd's Python binding exists only as a Debian package for Debian's interpreter, and programs (`nbdcopy`, `qemu-img`) read whole
disks where only some extents are needed. So this is our own. Source:
https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Container, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from causeway.errors import GuestFailed

# The most bytes that one request reads or writes, and the most bytes of a disk whose extents it asks for.
LARGEST, BYTES_AT_ONCE = 32 << 20, 1 << 30
# The server works at some while it receives the next, or while the client takes what was read.
_WRITES_UNDER_WAY = _READS_UNDER_WAY = 4
# Bytes: the client does not wake for each part of a write that the server takes.
_SEND_BUFFER = 4 << 20
# The most bytes to ask the QEMU of a guest for. From 128 KiB on its C library gets new memory from the system for each request,
# which costs more than the copy.
OF_A_GUEST = 120 << 10
# The contexts and flags of the protocol and of QEMU.
ALLOCATION = "base:allocation"
HOLE, READS_ZEROS = 1, 2
DIRTY = 1

_NBD_MAGIC, _OPTION_MAGIC, _OPTION_REPLY_MAGIC = 0x4E42444D41474943, 0x49484156454F5054, 0x3E889045565A9
_FIXED_NEWSTYLE, _NO_ZEROES = 1, 2
_OPT_GO, _OPT_STRUCTURED_REPLY, _OPT_SET_META_CONTEXT = 7, 8, 10
_REP_ACK, _REP_INFO, _REP_META_CONTEXT, _REP_ERROR = 1, 3, 4, 1 << 31
_REQUEST_MAGIC, _SIMPLE_REPLY_MAGIC, _STRUCTURED_REPLY_MAGIC = 0x25609513, 0x67446698, 0x668E33EF
_CMD_READ, _CMD_WRITE, _CMD_DISC, _CMD_FLUSH, _CMD_WRITE_ZEROES, _CMD_BLOCK_STATUS = 0, 1, 2, 3, 6, 7
_REPLY_NONE, _REPLY_DATA, _REPLY_HOLE, _REPLY_BLOCK_STATUS, _REPLY_ERROR = 0, 1, 2, 5, 1 << 15
_DONE = 1
# A type of ours, for answers that have none.
_SIMPLE = -1
_LONGEST_ERROR = 1 << 12


@dataclass(frozen=True)
class Extent:
    offset: int
    length: int
    flags: int


class NbdClient:
    """A connection to one export. Every method raises `GuestFailed` if the server refuses or does not answer in time."""

    def __init__(
        self,
        path: Path,
        export: str,
        contexts: tuple[str, ...] = (),
        *,
        timeout: float = 60.0,
        read_size: int = OF_A_GUEST,
    ) -> None:
        """``path``: a Unix socket. ``contexts``: those that `extents` will be asked for. ``timeout``: seconds for each answer.

        ``read_size``: the most bytes that are asked for at a time.
        """
        self._read_size = read_size
        self._where = f"{export} at {path}"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(timeout)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
        self._contexts: dict[str, int] = {}
        self._cookie = 0
        #: the cookies of writes that were sent and not answered
        self._under_way: set[int] = set()
        self.size = 0
        try:
            self._socket.connect(str(path))
            self._negotiate(export, contexts)
        except OSError as error:
            self._socket.close()
            raise self._failed(f"connect: {error}") from error
        except BaseException:
            self._socket.close()
            raise

    def __enter__(self) -> NbdClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Disconnects. What was written and not flushed may be lost."""
        try:
            self._socket.sendall(struct.pack(">IHHQQI", _REQUEST_MAGIC, 0, _CMD_DISC, 0, 0, 0))
        except OSError:
            # The server has ended already.
            return
        finally:
            self._socket.close()

    # requests

    def extents(self, context: str) -> Iterator[Extent]:
        """The extents of the whole disk in a context, in order. Neighbours with the same flags are one extent."""
        if context not in self._contexts:
            raise self._failed(f"the server does not know {context}")
        at, pending = 0, None
        while at < self.size:
            extents = self._block_status(context, at, min(BYTES_AT_ONCE, self.size - at))
            if not extents:
                raise self._failed(f"the server says nothing of {context} at {at}")
            for length, flags in extents:
                if pending is not None and pending.flags == flags:
                    pending = Extent(pending.offset, pending.length + length, flags)
                else:
                    if pending is not None:
                        yield pending
                    pending = Extent(at, length, flags)
                at += length
        if pending is not None:
            yield pending

    def read(self, offset: int, length: int) -> bytes:
        found = bytearray(length)
        self.read_into(offset, memoryview(found))
        return bytes(found)

    def read_into(self, offset: int, buffer: memoryview) -> None:
        """Fills the buffer with what the disk has from ``offset`` on."""
        self._settle()
        # Cookie of a request -> its part of the buffer, and where that is on the disk.
        under_way: dict[int, tuple[int, memoryview]] = {}
        asked = 0
        while asked < len(buffer) or under_way:
            if asked < len(buffer) and len(under_way) < _READS_UNDER_WAY:
                part = buffer[asked : asked + self._read_size]
                self._send(_CMD_READ, offset + asked, len(part))
                under_way[self._cookie] = offset + asked, part
                asked += len(part)
            else:
                self._receive_data(under_way)

    def write(self, offset: int, data: bytes | memoryview) -> None:
        """Sends it. `flush` waits until it is written, and raises what a write before it failed with."""
        for at in range(0, len(data), LARGEST):
            part = data[at : at + LARGEST]
            self._begin_write(_CMD_WRITE, offset + at, len(part), part)

    def write_zeros(self, offset: int, length: int) -> None:
        """As `write`."""
        for at in range(0, length, LARGEST):
            self._begin_write(_CMD_WRITE_ZEROES, offset + at, min(LARGEST, length - at))

    def flush(self) -> None:
        """Returns when everything written is on the medium."""
        self._settle()
        self._begin_write(_CMD_FLUSH, 0, 0)
        self._settle()

    def _begin_write(self, command: int, offset: int, length: int, data: bytes | memoryview = b"") -> None:
        if len(self._under_way) == _WRITES_UNDER_WAY:
            self._await_any()
        self._send(command, offset, length, data)
        self._under_way.add(self._cookie)

    def _settle(self) -> None:
        """Waits for all writes under way."""
        while self._under_way:
            self._await_any()

    def _await_any(self) -> None:
        """Waits for one of the writes under way; the server may answer them in any order."""
        flags, _kind, cookie, length = self._answer_head(self._under_way)
        self._exactly(length)
        if flags & _DONE:
            self._under_way.remove(cookie)

    # the handshake

    def _negotiate(self, export: str, contexts: tuple[str, ...]) -> None:
        magic, options, _flags = struct.unpack(">QQH", self._exactly(18))
        if (magic, options) != (_NBD_MAGIC, _OPTION_MAGIC):
            raise self._failed("the server speaks another protocol")
        self._socket.sendall(struct.pack(">I", _FIXED_NEWSTYLE | _NO_ZEROES))
        self._ask_option(_OPT_STRUCTURED_REPLY, b"")
        name = export.encode()
        if contexts:
            queries = b"".join(struct.pack(">I", len(each)) + each.encode() for each in contexts)
            asked = struct.pack(">I", len(name)) + name + struct.pack(">I", len(contexts)) + queries
            for data in self._ask_option(_OPT_SET_META_CONTEXT, asked):
                self._contexts[data[4:].decode()] = struct.unpack(">I", data[:4])[0]
        for data in self._ask_option(_OPT_GO, struct.pack(">I", len(name)) + name + struct.pack(">H", 0)):
            if struct.unpack(">H", data[:2])[0] == 0:
                self.size = struct.unpack(">Q", data[2:10])[0]

    def _ask_option(self, option: int, data: bytes) -> list[bytes]:
        """What the server sends before it accepts the option."""
        self._socket.sendall(struct.pack(">QII", _OPTION_MAGIC, option, len(data)) + data)
        extents: list[bytes] = []
        while True:
            magic, _option, kind, length = struct.unpack(">QIII", self._exactly(20))
            content = self._exactly(length)
            if magic != _OPTION_REPLY_MAGIC or kind & _REP_ERROR:
                raise self._failed(f"option {option} was refused: {content.decode(errors='replace') or kind}")
            if kind == _REP_ACK:
                return extents
            if kind in (_REP_INFO, _REP_META_CONTEXT):
                extents.append(content)

    # requests and their answers

    def _send(self, command: int, offset: int, length: int, data: bytes | memoryview = b"") -> None:
        self._cookie += 1
        header = struct.pack(">IHHQQI", _REQUEST_MAGIC, 0, command, self._cookie, offset, length)
        try:
            self._socket.sendall(header)
            if data:
                self._socket.sendall(data)
        except OSError as error:
            raise self._failed(str(error)) from error

    def _answer_head(self, wanted: Container[int]) -> tuple[int, int, int, int]:
        """(flags, type, cookie, length) of the next piece of an answer to one of these requests."""
        (magic,) = struct.unpack(">I", self._exactly(4))
        if magic == _SIMPLE_REPLY_MAGIC:
            error, cookie = struct.unpack(">IQ", self._exactly(12))
            if cookie in wanted and not error:
                return _DONE, _SIMPLE, cookie, 0
        elif magic == _STRUCTURED_REPLY_MAGIC:
            flags, kind, cookie, length = struct.unpack(">HHQI", self._exactly(16))
            if length > LARGEST + 8:
                raise self._failed(f"the server sends {length} bytes at once")
            if cookie in wanted and not kind & _REPLY_ERROR:
                return flags, kind, cookie, length
            content = self._exactly(length) if kind & _REPLY_ERROR and 6 <= length <= _LONGEST_ERROR else bytes(6)
            error = f"{struct.unpack('>I', content[:4])[0]}: {content[6:].decode(errors='replace')}"
        else:
            raise self._failed(f"an answer begins with {magic:#x}")
        raise self._failed(f"error {error}" if cookie in wanted else "the server answered another request")

    def _receive_data(self, under_way: dict[int, tuple[int, memoryview]]) -> None:
        """Receives the next piece of an answer to one of these reads."""
        flags, kind, cookie, length = self._answer_head(under_way)
        start, buffer = under_way[cookie]
        if kind == _SIMPLE:
            self._receive_into(buffer)
        elif kind == _REPLY_DATA and length >= 8:
            (at,) = struct.unpack(">Q", self._exactly(8))
            self._receive_into(self._part(buffer, at - start, length - 8))
        elif kind == _REPLY_HOLE and length == 12:
            at, size = struct.unpack(">QI", self._exactly(length))
            self._part(buffer, at - start, size)[:] = bytes(size)
        else:
            self._exactly(length)
        if flags & _DONE:
            del under_way[cookie]

    def _part(self, buffer: memoryview, first: int, size: int) -> memoryview:
        if not 0 <= first <= first + size <= len(buffer):
            raise self._failed(f"the server sends {size} bytes from {first} of {len(buffer)}")
        return buffer[first : first + size]

    def _block_status(self, context: str, offset: int, length: int) -> list[tuple[int, int]]:
        self._settle()
        self._send(_CMD_BLOCK_STATUS, offset, length)
        extents: list[tuple[int, int]] = []
        flags = 0
        while not flags & _DONE:
            flags, kind, _cookie, size = self._answer_head((self._cookie,))
            content = self._exactly(size)
            if kind == _REPLY_BLOCK_STATUS and struct.unpack(">I", content[:4])[0] == self._contexts[context]:
                extents = list(struct.iter_unpack(">II", content[4:]))
        return extents

    def _exactly(self, length: int) -> bytes:
        found = bytearray(length)
        self._receive_into(memoryview(found))
        return bytes(found)

    def _receive_into(self, view: memoryview) -> None:
        done = 0
        try:
            while done < len(view):
                size = self._socket.recv_into(view[done:])
                if not size:
                    raise self._failed("the server has gone")
                done += size
        except OSError as error:
            raise self._failed(str(error)) from error

    def _failed(self, why: str) -> GuestFailed:
        return GuestFailed("A disk can't be read or written beside its guest.", details=f"{self._where}: {why}")
