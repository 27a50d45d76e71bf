"""Local disks of simulated guests.

A disk is a text file: a header, then one JSON string per line for each line that the guest wrote. A disk made from an image
is an overlay on it: it names the image, and sees the lines that are in the image (if that was a simulated disk once). An
overlay can be read only together with its image, as a real one. What is exported begins with the header of an empty qcow2 image:
image services look into what they are given.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from causeway import durable
from causeway.errors import GuestFailed
from causeway.virt.driver import ExpectedDisk, LocalDisk, RootDisk

MAGIC = "causeway-simulated-disk"
# Version 3, clusters of 64 KiB, 1 GiB, no backing file; as the format's specification says.
EXPORTED = struct.pack(
    ">4sIQIIQIIQQIIQQQQII", b"QFI\xfb", 3, 0, 0, 16, 1 << 30, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 104
).ljust(512, b"\0")


@dataclass
class Header:
    """``inherited``: the lines of the image, as seen when the disk was made; never part of an export.

    ``size_mb`` and ``guest_format`` are of ephemeral disks and swap, ``size_gb`` is of root disks.
    """

    magic: str = MAGIC
    base_image_id: str | None = None
    size_gb: int = 0
    inherited: list[str] = field(default_factory=list)
    size_mb: int = 0
    guest_format: str | None = None


@dataclass
class Disk:
    header: Header
    lines: list[str] = field(default_factory=list)

    @property
    def all_lines(self) -> list[str]:
        return self.header.inherited + self.lines

    def encode(self) -> bytes:
        return b"\n".join([msgspec.json.encode(self.header), *map(msgspec.json.encode, self.lines), b""])


def decode(content: bytes) -> Disk | None:
    """The disk that these bytes are, or None if they are something else (a real image)."""
    # One that was copied beside its guest has the zeros behind it, too.
    first, _, rest = content.removeprefix(EXPORTED).rstrip(b"\0").partition(b"\n")
    if MAGIC.encode() not in first:
        return None
    try:
        header = msgspec.json.decode(first, type=Header)
        return Disk(header, [msgspec.json.decode(line, type=str) for line in rest.splitlines()])
    except msgspec.MsgspecError:
        return None


def load(path: Path) -> Disk:
    """Raises `GuestFailed` if there is none, or it is damaged."""
    try:
        disk = decode(path.read_bytes())
    except FileNotFoundError:
        raise GuestFailed(f"The disk '{path.name}' is missing.", details=str(path)) from None
    if disk is None:
        raise GuestFailed(f"The disk '{path.name}' is damaged.", details=str(path))
    return disk


def faults(folder: Path, expected: list[ExpectedDisk]) -> list[str]:
    """What is wrong with the disks that should be in a folder."""
    found = []
    for wanted in expected:
        try:
            header = load(folder / wanted.name).header
        except GuestFailed as failure:
            found.append(f"{failure.message} ({failure.details})")
            continue
        if (header.size_mb or header.size_gb * 1024) < wanted.size_mb:
            found.append(f"The disk '{wanted.name}' is smaller than {wanted.size_mb} MiB. ({folder / wanted.name})")
    return found


def append(path: Path, line: str) -> None:
    """What a guest's write does."""
    with path.open("ab") as file:
        file.write(msgspec.json.encode(line) + b"\n")


def create(path: Path, source: RootDisk) -> None:
    """Makes a root disk as `RootDisk` says; takes the snapshot's file. Raises `GuestFailed` if they don't fit together."""
    inherited = _lines_of_image(source)
    if source.snapshot is None:
        if source.base is None:
            raise GuestFailed("There is neither an image nor a snapshot to make the root disk from.")
        disk = Disk(Header(base_image_id=source.base_image_id, size_gb=source.size_gb, inherited=inherited))
    else:
        disk = _received(source.snapshot)
        if disk.header.base_image_id is not None and source.base is None:
            raise GuestFailed(
                f"The snapshot needs its base image {disk.header.base_image_id}, which was not given.",
                details=str(source.snapshot),
            )
        if disk.header.base_image_id is not None and disk.header.base_image_id != source.base_image_id:
            raise GuestFailed(
                f"The snapshot is of a server on image {disk.header.base_image_id}, not on {source.base_image_id}.",
                details=str(source.snapshot),
            )
        disk.header.inherited = inherited if disk.header.base_image_id is not None else []
        disk.header.size_gb = max(disk.header.size_gb, source.size_gb)
    durable.write(path, disk.encode())
    if source.snapshot is not None:
        source.snapshot.unlink()


def create_empty(path: Path, source: RootDisk) -> None:
    """Makes a root disk for a guest that brings what is on it: an overlay over its base image, or a blank one."""
    if source.base is not None:
        create(path, source)
    else:
        durable.write(path, Disk(Header(size_gb=source.size_gb)).encode())


def create_local(path: Path, wanted: LocalDisk) -> None:
    """Makes an ephemeral disk or swap, or what is there fit, as `LocalDisk` says."""
    if wanted.snapshot is not None:
        disk = _received(wanted.snapshot)
    elif path.exists():
        disk = load(path)
        if wanted.is_swap and disk.header.size_mb != wanted.size_mb:
            disk = Disk(Header(guest_format=wanted.guest_format))
    else:
        disk = Disk(Header(guest_format=wanted.guest_format))
    if wanted.snapshot is None and path.exists() and disk.header.size_mb >= wanted.size_mb:
        return
    disk.header.size_mb = max(disk.header.size_mb, wanted.size_mb)
    durable.write(path, disk.encode())
    if wanted.snapshot is not None:
        wanted.snapshot.unlink()


def export(path: Path, target: Path, *, flatten: bool) -> Disk:
    """Writes a copy that can be sent: an overlay without what is the image's, or (``flatten``) everything."""
    disk = load(path)
    header = Header(size_gb=disk.header.size_gb, size_mb=disk.header.size_mb, guest_format=disk.header.guest_format)
    if flatten or disk.header.base_image_id is None:
        copy = Disk(header, disk.all_lines)
    else:
        header.base_image_id = disk.header.base_image_id
        copy = Disk(header, disk.lines)
    target.write_bytes(EXPORTED + copy.encode())
    return copy


def _lines_of_image(source: RootDisk) -> list[str]:
    if source.base is None:
        return []
    try:
        image = decode(source.base.read_bytes()) if _is_ours(source.base) else None
    except FileNotFoundError:
        raise GuestFailed(
            f"The base image {source.base_image_id} is missing in the image cache.", details=str(source.base)
        ) from None
    return image.all_lines if image is not None else []


def _is_ours(path: Path) -> bool:
    """Images can be large: only the beginning is looked at."""
    with path.open("rb") as file:
        return MAGIC.encode() in file.read(len(EXPORTED) + len(MAGIC) + 20)


def _received(snapshot: Path) -> Disk:
    try:
        disk = decode(snapshot.read_bytes())
    except FileNotFoundError:
        raise GuestFailed("The snapshot to start from is missing.", details=str(snapshot)) from None
    if disk is None:
        raise GuestFailed("The snapshot to start from is damaged.", details=str(snapshot))
    return disk
