"""Rounds of simulated disks: a copy of the disk is kept for each round, and copies are compared.

::

    STATE_DIR/rounds/UUID/NUMBER.json   a round: its disks, since when, whether it can be read
    STATE_DIR/rounds/UUID/NUMBER.NAME   a disk, exported at that instant

As a hypervisor loses its rounds when its machine is started anew, nothing of them is synced.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from causeway import durable
from causeway.errors import GuestFailed, WarmCopyImpossible
from causeway.virt import warm
from causeway.virt.simulated import disk
from causeway.virt.simulated.disk import BLOCK, SIZE
from causeway.virt.simulated.link import Link, Transfer


@dataclass
class _Kept:
    number: int
    since: int | None = None
    flatten: bool = False
    is_open: bool = True
    names: list[str] = field(default_factory=list)
    boot: str = field(default_factory=durable.this_boot)


_KEPT = msgspec.json.Decoder(_Kept)


class _Reader(warm.DiskReader):
    """Reads what changed from ``before`` to ``content``. What is read goes over the link."""

    def __init__(self, content: bytes, before: bytes | None, transfer: Transfer) -> None:
        self._transfer = transfer
        self._scale: float | None = None
        # Behind them, up to SIZE, both are zeros.
        self._content, self._before = content, before

    def extents(self) -> list[tuple[int, int]]:
        content, before = self._content, self._before or b""
        end = max(len(content), len(before))
        return [(at, BLOCK) for at in range(0, end, BLOCK) if _block(content, at) != _block(before, at)]

    @property
    def scale(self) -> float:
        if self._scale is None:
            content, before = (
                disk.decode(each) if each is not None else None for each in (self._content, self._before)
            )
            data = 0 if content is None else content.data if before is None else content.data_since(before)
            self._scale = disk.scale(self.extents(), data)
        return self._scale

    def read_into(self, offset: int, buffer: memoryview) -> None:
        if self._transfer.take(len(buffer) * self.scale):
            raise GuestFailed("The host was stopped while a disk of its guests was read.")
        buffer[:] = self._content[offset : offset + len(buffer)].ljust(len(buffer), b"\0")

    def is_of_base(self, offset: int, data: memoryview) -> bool:  # noqa: ARG002
        return warm.is_zeros(data)


def _block(content: bytes, offset: int) -> bytes:
    return content[offset : offset + BLOCK].ljust(BLOCK, b"\0")


class _Writer(warm.DiskWriter):
    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("r+b" if path.exists() else "w+b")

    def write(self, offset: int, data: bytes | memoryview) -> None:
        self._file.seek(offset)
        self._file.write(data)

    def write_zeros(self, offset: int, length: int) -> None:
        self.write(offset, bytes(length))

    def flush(self) -> None:
        self._file.flush()
        durable.sync(self._path)

    def close(self) -> None:
        self._file.close()


class Rounds:
    """The rounds of one host's guests. Callers hold the guest's lock."""

    def __init__(self, state_dir: Path, link: Link) -> None:
        self._directory = state_dir / "rounds"
        self._link = link

    def begin(self, uuid: str, disks: dict[str, Path], number: int, *, since: int | None, flatten: bool) -> warm.Round:
        """See `WarmCopyMethods.begin_round`. ``disks``: name -> file."""
        folder = self._directory / uuid
        folder.mkdir(parents=True, exist_ok=True)
        former = self._kept(uuid, since)
        kept = _Kept(number, since if former is not None else None, flatten, True, list(disks))
        found = warm.Round(number, kept.since)
        for name, path in disks.items():
            copy = disk.export(path, folder / f"{number}.{name}", flatten=flatten)
            if (folder / f"{number}.{name}").stat().st_size > SIZE:
                raise WarmCopyImpossible("The disk is larger than a simulated one can be.", details=str(path))
            found.disks.append(warm.RoundDisk(name, SIZE, BLOCK, copy.header.base_image_id))
        durable.replace(folder / f"{number}.json", msgspec.json.encode(kept))
        return found

    def has(self, uuid: str, number: int) -> bool:
        kept = self._kept(uuid, number)
        return kept is not None and kept.is_open

    @contextmanager
    def open(self, uuid: str, name: str, number: int) -> Iterator[warm.DiskReader]:
        kept = self._kept(uuid, number)
        if kept is None or not kept.is_open:
            raise GuestFailed(f"Round {number} of guest {uuid} can't be read any more.")
        with self._reader(self._content(uuid, name, number), self._content(uuid, name, kept.since)) as reader:
            yield reader

    def end(self, uuid: str, number: int) -> None:
        kept = self._kept(uuid, number)
        if kept is not None:
            kept.is_open = False
            durable.replace(self._directory / uuid / f"{number}.json", msgspec.json.encode(kept))

    @contextmanager
    def open_changes(self, uuid: str, name: str, path: Path, since: int) -> Iterator[warm.DiskReader | None]:
        kept = self._kept(uuid, since)
        if kept is None:
            yield None
            return
        present = self._directory / uuid / f"last.{name}"
        disk.export(path, present, flatten=kept.flatten)
        with self._reader(present.read_bytes(), self._content(uuid, name, since)) as reader:
            yield reader

    @contextmanager
    def _reader(self, content: bytes | None, before: bytes | None) -> Iterator[_Reader]:
        with self._link.transfer() as transfer:
            yield _Reader(content or b"", before, transfer)

    def servers(self) -> list[str]:
        # The host's compute service has a folder of the same name, and there the names have two parts.
        folders = self._directory.iterdir() if self._directory.exists() else ()
        return sorted(path.name for path in folders if "." not in path.name)

    def discard(self, uuid: str) -> None:
        with suppress(FileNotFoundError):
            shutil.rmtree(self._directory / uuid)

    def _kept(self, uuid: str, number: int | None) -> _Kept | None:
        with suppress(FileNotFoundError, msgspec.MsgspecError):
            kept = _KEPT.decode((self._directory / uuid / f"{number}.json").read_bytes())
            return kept if kept.boot == durable.this_boot() else None
        return None

    def _content(self, uuid: str, name: str, number: int | None) -> bytes | None:
        return (self._directory / uuid / f"{number}.{name}").read_bytes() if number is not None else None


@contextmanager
def open_copy(path: Path) -> Iterator[warm.DiskWriter]:
    writer = _Writer(path)
    try:
        yield writer
    finally:
        writer.close()
