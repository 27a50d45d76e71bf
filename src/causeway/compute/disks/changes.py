"""The stream in which disks, or changes of them, travel, and the list of digests by which both sides compare what they have.

::

    header    magic "CWCHG2", size of the disk, size of a block
    piece     offset, length, kind (DATA, PACKED or ZEROS), digest of the bytes; DATA: the bytes; PACKED: their size, compressed,
              and the compressed bytes
    end       the place on the disk where this ends, all bytes of data as they travelled, kind END; the digest of the sender's
              list up to that place

Only receivers that asked for it (`CODINGS`) get PACKED. Digests are BLAKE3's; a receiver that does not know them (release 0.1.0)
gets "CWCHG1" instead, where they are BLAKE2b's, six times slower. A list can have digests of both, the same on both sides.

Each piece is checked when it arrives. Sender and receiver each note the digests of the blocks that they sent or wrote. If the
lists are the same at the end, the receiver has the last state of every block that was sent.
"""

from __future__ import annotations

import functools
import hashlib
import struct
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Protocol

from blake3 import blake3

from causeway.compute.disks.overlap import BEHIND, WriteBehind, buffers, read_ahead
from causeway.compute.disks.packing import ZSTD, Packer, unpacked
from causeway.errors import DiskTransferBroken
from causeway.virt.warm import DiskReader, DiskWriter, is_zeros

_HEADER = struct.Struct(">6sQI")
_PIECE = struct.Struct(">QQB16s")
_PACKED_SIZE = struct.Struct(">I")
_DATA, _ZEROS, _END, _PACKED = 1, 2, 3, 4
BLAKE3 = "blake3"
# The codings that this release can read.
CODINGS = [ZSTD, BLAKE3]
# Bytes that are read and sent at a time.
PIECE_BYTES = 1 << 20
_DIGEST_BYTES = 16
_NEVER_SENT = bytes(_DIGEST_BYTES)


class Source(Protocol):
    """Where a stream is read from."""

    def readinto(self, buffer: memoryview, /) -> int:
        """Fills the buffer, or the first bytes of it; 0 at the end."""


#: gets, for each piece of data, how many bytes travelled, and how many bytes of the disk they are
Arrived = Callable[[int, int], None]


Digest = Callable[[bytes | memoryview], bytes]


def _blake2b(data: bytes | memoryview) -> bytes:
    return hashlib.blake2b(data, digest_size=_DIGEST_BYTES).digest()


def _blake3(data: bytes | memoryview) -> bytes:
    return blake3(data).digest(_DIGEST_BYTES)


_WITH_BLAKE2B, _WITH_BLAKE3 = b"CWCHG1", b"CWCHG2"
_DIGEST_OF: dict[bytes, Digest] = {_WITH_BLAKE2B: _blake2b, _WITH_BLAKE3: _blake3}


@functools.cache
def _digest_of_zeros(digest: Digest, block: int) -> bytes:
    return digest(bytes(block))


class Digests:
    """The digests of the blocks of a disk that travelled."""

    def __init__(self, size: int, block: int, content: bytes | None = None) -> None:
        self.size, self.block = size, block
        length = -(-size // block) * _DIGEST_BYTES
        if content is not None and len(content) != length:
            raise ValueError(f"{len(content)} bytes of digests, not {length}")
        self._all = bytearray(content if content is not None else length)

    def note(self, offset: int, data: memoryview, digest: Digest) -> bytes:
        """Notes blocks; returns one digest of them all."""
        first = offset // self.block
        found = b"".join([digest(data[at : at + self.block]) for at in range(0, len(data), self.block)])
        self._all[first * _DIGEST_BYTES : first * _DIGEST_BYTES + len(found)] = found
        return digest(found)

    def note_zeros(self, offset: int, length: int, digest: Digest) -> None:
        first, count = offset // self.block, -(-length // self.block)
        self._all[first * _DIGEST_BYTES : (first + count) * _DIGEST_BYTES] = (
            _digest_of_zeros(digest, self.block) * count
        )

    def encode(self) -> bytes:
        return bytes(self._all)

    def digest(self, end: int, digest: Digest) -> bytes:
        """One digest of the list up to ``end`` (a place on the disk). Blocks behind it do not count."""
        blocks = -(-end // self.block)
        return digest(memoryview(self._all)[: blocks * _DIGEST_BYTES])


def stream(
    reader: DiskReader,
    extents: Iterable[tuple[int, int]],
    digests: Digests,
    *,
    is_full: bool,
    leads_to: int | None = None,
    slow_down: Callable[[int], None] = lambda _size: None,
    packer: Packer | None = None,
    codings: Collection[str] = CODINGS,
    before_end: Callable[[], None] = lambda: None,
) -> Iterator[bytes | memoryview]:
    """Yields the stream of these extents of a disk, in pieces; each is valid until the next one is wanted.

    ``is_full``: the receiver has only the base image so far. ``leads_to``: the place on the disk where these extents end, if
    others follow. ``slow_down`` gets the number of bytes that are sent next, and returns when they may be sent. ``packer``:
    compresses them. ``codings``: those that the receiver can read. ``before_end`` is called when all digests are noted.
    """
    magic = _WITH_BLAKE3 if BLAKE3 in codings else _WITH_BLAKE2B
    digest_of, sent = _DIGEST_OF[magic], 0
    yield _HEADER.pack(magic, digests.size, digests.block)
    for at, data in read_ahead(reader, extents, PIECE_BYTES):
        for start, end, is_zero in _runs(reader, at, data, digests.block, is_full=is_full):
            if is_zero:
                digests.note_zeros(at + start, end - start, digest_of)
                yield _PIECE.pack(at + start, end - start, _ZEROS, _NEVER_SENT)
                continue
            part = data[start:end]
            digest = digests.note(at + start, part, digest_of)
            packed = packer.packed(part) if packer is not None else None
            content = part if packed is None else packed
            head = _PIECE.pack(at + start, len(part), _DATA if packed is None else _PACKED, digest)
            began = packer.clock() if packer is not None else 0.0
            slow_down(len(content))
            sent += len(content)
            yield head if packed is None else head + _PACKED_SIZE.pack(len(packed))
            yield content
            if packer is not None:
                packer.sent(len(content), packer.clock() - began)
    leads_to = digests.size if leads_to is None else leads_to
    before_end()
    yield _PIECE.pack(leads_to, sent, _END, digests.digest(leads_to, digest_of))


def _runs(
    reader: DiskReader, offset: int, data: memoryview, block: int, *, is_full: bool
) -> Iterator[tuple[int, int, bool]]:
    """Yields (start, end, whether it is zeros) of what must travel of a piece; neighbours of a kind are joined."""
    pending: tuple[int, int, bool] | None = None
    for start in range(0, len(data), block):
        end = min(start + block, len(data))
        part = data[start:end]
        if is_full and reader.is_of_base(offset + start, part):
            continue
        is_zero = is_zeros(part)
        if pending is not None and pending[1] == start and pending[2] == is_zero:
            pending = (pending[0], end, is_zero)
            continue
        if pending is not None:
            yield pending
        pending = (start, end, is_zero)
    if pending is not None:
        yield pending


def apply(source: Source, writer: DiskWriter, digests: Digests, arrived: Arrived) -> int:
    """Writes what arrives; returns how many bytes of data travelled.

    Raises DiskTransferBroken if something is missing or damaged, or if the lists of digests differ at the end. Each piece was
    checked before it was written, so the stream may be applied again.
    """
    magic, size, block = _HEADER.unpack(_exactly(source, _HEADER.size))
    digest_of = _DIGEST_OF.get(magic)
    if digest_of is None or (size, block) != (digests.size, digests.block):
        raise DiskTransferBroken(
            "What came of a disk is not what was announced.", details=f"{magic!r}, {size}, {block}"
        )
    with WriteBehind(writer) as behind:
        return _apply(source, behind, digests, digest_of, arrived)


def _apply(source: Source, writer: WriteBehind, digests: Digests, digest_of: Digest, arrived: Arrived) -> int:
    """Applies the pieces, to the end of the stream."""
    sent, size, block = 0, digests.size, digests.block
    # The next one is filled while those before are written.
    kept = buffers(BEHIND + 1, PIECE_BYTES)
    # Pieces come in the order of the disk, so a stream ends at the latest where the disk does.
    reached = 0
    while True:
        offset, length, kind, digest = _PIECE.unpack(_exactly(source, _PIECE.size))
        if kind == _END:
            writer.flush()
            _compare(sent, length, digests.digest(min(offset, size), digest_of), digest)
            return sent
        if (
            kind not in (_DATA, _ZEROS, _PACKED)
            or not 0 < length <= size - offset
            or offset % block
            or offset < reached
            or length > PIECE_BYTES
        ):
            raise DiskTransferBroken(
                "A piece of a disk is not of this disk.", details=f"{kind}: {length} bytes at {offset}"
            )
        reached = offset + length
        if kind == _ZEROS:
            digests.note_zeros(offset, length, digest_of)
            writer.write_zeros(offset, length)
            continue
        travelled = length if kind == _DATA else _packed_size(source, length)
        data = next(kept)[:travelled]
        _fill(source, data)
        if kind == _PACKED:
            data = memoryview(unpacked(data, length))
        if digests.note(offset, data, digest_of) != digest:
            raise DiskTransferBroken("A piece of a disk was damaged on its way.", details=f"{length} bytes at {offset}")
        writer.write(offset, data)
        sent += travelled
        arrived(travelled, length)


def _packed_size(source: Source, length: int) -> int:
    size: int
    (size,) = _PACKED_SIZE.unpack(_exactly(source, _PACKED_SIZE.size))
    if size >= length:
        raise DiskTransferBroken("A piece of a disk is not of this disk.", details=f"{size} bytes for {length}")
    return size


def _compare(sent: int, announced: int, ours: bytes, theirs: bytes) -> None:
    if sent != announced:
        raise DiskTransferBroken("A piece of a disk is missing.", details=f"{sent} bytes came, {announced} were sent")
    if ours != theirs:
        raise DiskTransferBroken("The copy of a disk is not what the source has sent.", details="digests differ")


def _exactly(source: Source, size: int) -> bytes:
    found = bytearray(size)
    _fill(source, memoryview(found))
    return bytes(found)


def _fill(source: Source, buffer: memoryview) -> None:
    done = 0
    while done < len(buffer):
        size = source.readinto(buffer[done:])
        if not size:
            raise DiskTransferBroken(
                "A disk's transfer ended early.", details=f"{len(buffer) - done} bytes are missing"
            )
        done += size
