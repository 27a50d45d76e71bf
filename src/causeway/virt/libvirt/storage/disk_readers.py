"""Reads a disk block by block over NBD and compares it with its base image; writes a disk."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from causeway.virt import warm
from causeway.virt.driver import BaseImage
from causeway.virt.libvirt.storage import nbd, qemu_img
from causeway.virt.libvirt.storage.early_flush import EarlyFlush
from causeway.virt.libvirt.storage.nbd import NbdClient
from causeway.virt.libvirt.storage.nbd_server import served
from causeway.virt.warm import is_zeros

_CACHED = 1 << 20


class Base:
    """The image below a disk."""

    def __init__(self, client: NbdClient) -> None:
        self._client = client
        self._data = [
            (each.offset, each.offset + each.length)
            for each in client.extents(nbd.ALLOCATION)
            if not each.flags & nbd.READS_ZEROS
        ]
        self._place, self._at, self._cache = 0, -1, b""

    def extents(self) -> list[tuple[int, int]]:
        return [(start, end - start) for start, end in self._data]

    def has(self, offset: int, data: memoryview) -> bool:
        """Whether the image has the same ``data`` at ``offset``. Quick if it is asked in the order of the disk."""
        if not self._may_have_data(offset, len(data)):
            return is_zeros(data)
        # Python compares views byte by byte.
        return self._block(offset, len(data)) == data.tobytes()

    def _may_have_data(self, offset: int, length: int) -> bool:
        if self._place and self._data[self._place - 1][1] > offset:
            self._place = 0
        while self._place < len(self._data) and self._data[self._place][1] <= offset:
            self._place += 1
        return self._place < len(self._data) and self._data[self._place][0] < offset + length

    def _block(self, offset: int, length: int) -> bytes:
        at = offset // _CACHED * _CACHED
        if at != self._at:
            self._cache = self._client.read(at, min(_CACHED, self._client.size - at)) if at < self._client.size else b""
            self._at = at
        return self._cache[offset - at : offset - at + length].ljust(length, b"\0")


class Reader(warm.DiskReader):
    """Reads a disk. ``extents`` (whole blocks): what may have to travel. ``base``: the image below it."""

    def __init__(self, client: NbdClient, extents: list[tuple[int, int]], base: Base | None) -> None:
        self._client, self._extents, self._base = client, extents, base

    def extents(self) -> list[tuple[int, int]]:
        return self._extents

    def read_into(self, offset: int, buffer: memoryview) -> None:
        self._client.read_into(offset, buffer)

    def is_of_base(self, offset: int, data: memoryview) -> bool:
        return self._base.has(offset, data) if self._base is not None else is_zeros(data)


class Writer(warm.DiskWriter):
    """Writes a disk. ``early``: of the file that has it, if it is a file."""

    def __init__(self, client: NbdClient, early: EarlyFlush | None = None) -> None:
        self._client, self._early = client, early

    def write(self, offset: int, data: memoryview) -> None:
        self._client.write(offset, data)
        if self._early is not None:
            self._early.wrote(len(data))

    def write_zeros(self, offset: int, length: int) -> None:
        self._client.write_zeros(offset, length)

    def flush(self) -> None:
        self._client.flush()


@contextmanager
def open_copy(path: Path, size: int, base: BaseImage | None) -> Iterator[warm.DiskWriter]:
    """Opens a disk for writing, or makes it. While it is open it stands on ``base``, so that zeros hide what the base has there.

    When the context is left, it names no other file.
    """
    if not path.exists():
        partial = path.with_name(f".{path.name}.new")
        partial.unlink(missing_ok=True)
        qemu_img.create(partial, size)
        partial.rename(path)
    if base is not None:
        qemu_img.name_below(path, base)
    with EarlyFlush(path) as early, served(path, "qcow2", writable=True) as client:
        yield Writer(client, early)
    if base is not None:
        qemu_img.name_below(path, None)
