"""Compresses the data of disks (zstd, level 1) where a probe finds that it pays.

It pays if the sender would wait for the link longer than compressing takes, and if sending the bytes that are saved would take
longer, too. Both are measured on the first `PROBE_BYTES`, which are not compressed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from backports import zstd

from causeway.errors import DiskTransferBroken

ZSTD = "zstd"
PROBE_BYTES = 16 << 20
# For so many bytes a verdict holds: links and contents change.
VERDICT_BYTES = 1 << 30
_LEVEL = 1


@dataclass(frozen=True)
class Probe:
    """Sending ``size`` bytes took ``seconds``, ``waited`` of them for the link. Compressed they are ``packed`` bytes."""

    size: int
    packed: int
    packing_seconds: float
    seconds: float
    waited: float

    @property
    def pays(self) -> bool:
        saved = self.seconds * (1 - self.packed / self.size)
        return self.packing_seconds < min(self.waited, saved)


@dataclass
class Verdict:
    """Whether compressing a disk pays, and for how many more bytes that holds."""

    packs: bool = False
    left: int = 0


@dataclass
class Packer:
    """Compresses the pieces of one part if that pays. If ``verdict`` has expired, it probes once.

    ``later``: seconds per byte for sending after the part was read, if it is not sent meanwhile.
    """

    verdict: Verdict
    later: float = 0.0
    clock: Callable[[], float] = time.monotonic
    _kept: list[bytes] = field(default_factory=list)
    _size: int = 0
    _waited: float = 0.0
    _began: float = 0.0

    def __post_init__(self) -> None:
        self._compressor = zstd.ZstdCompressor(level=_LEVEL)
        self._probes = self.verdict.left <= 0

    def packed(self, data: memoryview) -> bytes | None:
        """What to send for ``data``; None: ``data`` itself."""
        if self._probes:
            self._began = self._began if self._kept else self.clock()
            self._kept.append(data.tobytes())
            return None
        self.verdict.left -= len(data)
        return self._pack(data) if self.verdict.packs else None

    def sent(self, size: int, waited: float) -> None:
        """``waited``: seconds until the receiver took these bytes."""
        if not self._probes:
            return
        self._size += size
        self._waited += waited
        if self._size >= PROBE_BYTES:
            self._decide()

    def _decide(self) -> None:
        sent_at = self.clock()
        packed = sum(len(self._pack(data) or data) for data in self._kept)
        later = self._size * self.later
        probe = Probe(self._size, packed, self.clock() - sent_at, sent_at - self._began + later, self._waited + later)
        self.verdict.packs, self.verdict.left = probe.pays, VERDICT_BYTES
        self._kept, self._probes = [], False

    def _pack(self, data: bytes | memoryview) -> bytes | None:
        found = self._compressor.compress(data, mode=self._compressor.FLUSH_FRAME)
        return found if len(found) < len(data) else None


def unpacked(data: bytes | memoryview, size: int) -> bytes:
    """Decompresses ``data``. Raises DiskTransferBroken if it does not give ``size`` bytes."""
    decompressor = zstd.ZstdDecompressor()
    try:
        # Before decompressing: damaged data may claim any size, and frames that follow the first may have any.
        if zstd.get_frame_info(data).decompressed_size != size:
            raise DiskTransferBroken("A piece of a disk was damaged on its way.", details=f"not {size} bytes")
        found = decompressor.decompress(data, max_length=size)
    except zstd.ZstdError as failure:
        raise DiskTransferBroken("A piece of a disk was damaged on its way.", details=str(failure)) from failure
    if len(found) != size or decompressor.unused_data:
        raise DiskTransferBroken("A piece of a disk was damaged on its way.", details=f"not {size} bytes")
    return found
