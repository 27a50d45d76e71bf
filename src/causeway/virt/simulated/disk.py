"""Local disks of simulated guests.

A disk is a text file: a header, then a JSON string in a line of its own for each line that the guest wrote. A disk made from an
image is an overlay: it names the image, and shows the image's lines if the image was once a simulated disk. Like a real overlay
it can be read only together with its image. An exported disk begins with the header of an empty qcow2 image, because image
services look into what they are given.

A guest that writes all the time (`activity`) has blocks at the end of its disk, which it overwrites one after another. Each of
its writes stands for `WRITE` bytes of a real disk, and the whole disk for `Disk.data` bytes (see `scale`).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from causeway import durable
from causeway.errors import GuestFailed, ImageRefused
from causeway.model.image import QCOW2
from causeway.virt import qcow2
from causeway.virt.driver import ExpectedDisk, LocalDisk, RootDisk
from causeway.virt.image_formats import check_size, most_bytes

MAGIC = "causeway-simulated-disk"
# Version 3, clusters of 64 KiB, 1 GiB, no backing file; as the format's specification says.
EXPORTED = struct.pack(
    ">4sIQIIQIIQQIIQQQQII", b"QFI\xfb", 3, 0, 0, 16, 1 << 30, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 104
).ljust(512, b"\0")


# In a shared store (`shared_store`): who may not write into it any more.
FENCED = "fenced"

# The disk of a guest that writes all the time, whatever its flavor says: the file, zeros, and the blocks that it overwrites.
SIZE, BLOCK, BLOCKS = 4 << 20, 512, 64
# For how many bytes a write stands.
WRITE = 4096
_TAIL = SIZE - BLOCKS * BLOCK
_FILL = b"."
_GIB, _MIB = 1 << 30, 1 << 20
_RECEIVED = "A disk that was received"


@dataclass
class Written:
    """What a guest that writes all the time has on its disk. ``data``: bytes before the first write. ``at``: time of the last."""

    data: int
    #: each begins with the number of the write that it comes from
    blocks: list[str] = field(default_factory=list)
    at: float = 0.0

    @property
    def count(self) -> int:
        """The number of the last write."""
        return max(int(text.partition(" ")[0]) for text in self.blocks)


@dataclass
class Header:
    """``inherited``: the lines that the image had when the disk was made; they are never exported.

    Ephemeral disks and swap have ``size_mb`` (MiB) and ``guest_format``, root disks have ``size_gb`` (GiB).
    """

    magic: str = MAGIC
    base_image_id: str | None = None
    size_gb: int = 0
    inherited: list[str] = field(default_factory=list)
    size_mb: int = 0
    guest_format: str | None = None
    written: Written | None = None

    @property
    def size(self) -> int:
        """Bytes, according to the flavor."""
        return self.size_mb * _MIB or self.size_gb * _GIB


@dataclass
class Disk:
    header: Header
    lines: list[str] = field(default_factory=list)

    @property
    def all_lines(self) -> list[str]:
        return self.header.inherited + self.lines

    @property
    def data(self) -> int:
        """Bytes that the disk of a guest that writes all the time stands for."""
        written = self.header.written
        return 0 if written is None else min(self._limit, written.data + (written.count + 1 - BLOCKS) * WRITE)

    def data_since(self, before: Disk) -> int:
        """Bytes that were written since the disk was like ``before``."""
        written, former = self.header.written, before.header.written
        if written is None or former is None:
            return self.data
        return min(self._limit, (written.count - former.count) * WRITE)

    @property
    def _limit(self) -> int:
        return max(self.header.size, BLOCKS * BLOCK)

    def encode(self) -> bytes:
        return b"\n".join([msgspec.json.encode(self.header), *map(msgspec.json.encode, self.lines), b""])

    def exported(self) -> bytes:
        """The content of the disk as it is sent."""
        written = self.header.written
        if written is None:
            return EXPORTED + self.encode()
        # Each block has a fixed place, so that a write changes only its own block.
        header = replace(self.header, written=replace(written, blocks=[]))
        text = EXPORTED + Disk(header, self.lines).encode()
        if len(text) > _TAIL:
            raise GuestFailed("The disk is larger than a simulated one can be.")
        return text.ljust(_TAIL, b"\0") + b"".join(each.encode().ljust(BLOCK, _FILL) for each in written.blocks)


def decode(content: bytes) -> Disk | None:
    """The disk in these bytes; None: they are something else, such as a real image."""
    if content.startswith(qcow2.MAGIC) and not content.startswith(EXPORTED):
        content = qcow2.disk_of(content) or b""
    # A disk that was copied while its guest ran has zeros behind it.
    text = content[:_TAIL] if content.startswith(EXPORTED) else content
    first, _, rest = text.removeprefix(EXPORTED).rstrip(b"\0").partition(b"\n")
    if MAGIC.encode() not in first:
        return None
    try:
        header = msgspec.json.decode(first, type=Header)
        if header.written is not None and not header.written.blocks:
            header.written.blocks = [
                content[at : at + BLOCK].rstrip(_FILL).decode() for at in range(_TAIL, SIZE, BLOCK)
            ]
            if len(content) != SIZE or header.written.count < 0:
                return None
        return Disk(header, [msgspec.json.decode(line, type=str) for line in rest.splitlines()])
    except (msgspec.MsgspecError, ValueError):
        return None


def scale(extents: list[tuple[int, int]], data: int) -> float:
    """For how many bytes of a real disk each byte of ``extents`` stands, if the blocks in them stand for ``data`` bytes."""
    blocks = sum(length for offset, length in extents if offset >= _TAIL)
    actual = sum(length for _offset, length in extents)
    return (actual - blocks + max(data, blocks)) / actual if actual else 1.0


def load(path: Path) -> Disk:
    """Reads a disk. Raises `GuestFailed` if there is none, or if it is damaged."""
    try:
        disk = decode(path.read_bytes())
    except FileNotFoundError:
        raise GuestFailed(f"The disk '{path.name}' is missing.", details=str(path)) from None
    if disk is None:
        raise GuestFailed(f"The disk '{path.name}' is damaged.", details=str(path))
    return disk


def save(path: Path, disk: Disk) -> None:
    """Writes a disk, as a whole. A disk in shared storage stays there."""
    durable.write(path.resolve(), disk.encode())


def faults(folder: Path, expected: list[ExpectedDisk]) -> list[str]:
    """What is wrong with the disks that are expected in a folder; see `HostMethods.copy_faults`."""
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


def is_fenced(store: Path, host: str, uuid: str) -> bool:
    """Whether the guest of a host may not write into a shared store any more."""
    return (store / FENCED / f"{uuid}@{host}").exists()


def is_cut_off(path: Path, host: str, uuid: str) -> bool:
    """Whether the guest of a host may not write to its disk any more, since another host has taken it over."""
    return path.is_symlink() and is_fenced(path.resolve().parent.parent, host, uuid)


def append(path: Path, line: str) -> None:
    """Writes a line to a disk, as a guest does."""
    with path.open("ab") as file:
        file.write(msgspec.json.encode(line) + b"\n")


def create(path: Path, source: RootDisk) -> None:
    """Makes a root disk as `RootDisk` says; takes the file of the snapshot.

    Raises `GuestFailed` if image and snapshot do not fit together, or if one is missing or damaged; `ImageRefused` if the
    snapshot is not in the format of exported disks, or larger than it may be.
    """
    inherited = _lines_of_image(source)
    if source.snapshot is None:
        if source.base is None:
            raise GuestFailed("There is neither an image nor a snapshot to make the root disk from.")
        disk = Disk(Header(base_image_id=source.base_image_id, size_gb=source.size_gb, inherited=inherited))
    else:
        disk = _received(source.snapshot, source.snapshot_format)
        check_size(_RECEIVED, disk.header.size, most_bytes(source.size_gb, path.parent))
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
    save(path, disk)
    if source.snapshot is not None:
        source.snapshot.unlink()


def create_empty(path: Path, source: RootDisk) -> None:
    """Makes an empty root disk for a guest that will arrive: on its base image, or blank."""
    if source.base is not None:
        create(path, source)
    else:
        save(path, Disk(Header(size_gb=source.size_gb)))


def create_local(path: Path, wanted: LocalDisk) -> None:
    """Makes an ephemeral disk or swap, or changes the one that exists, as `LocalDisk` says."""
    if wanted.snapshot is not None:
        disk = _received(wanted.snapshot, wanted.snapshot_format)
        check_size(_RECEIVED, disk.header.size, wanted.size_mb * _MIB)
    elif path.exists():
        disk = load(path)
        if wanted.is_swap and disk.header.size_mb != wanted.size_mb:
            disk = Disk(Header(guest_format=wanted.guest_format))
    else:
        disk = Disk(Header(guest_format=wanted.guest_format))
    if wanted.snapshot is None and path.exists() and disk.header.size_mb >= wanted.size_mb:
        return
    disk.header.size_mb = max(disk.header.size_mb, wanted.size_mb)
    save(path, disk)
    if wanted.snapshot is not None:
        wanted.snapshot.unlink()


def export(path: Path, target: Path, *, flatten: bool) -> Disk:
    """Writes a copy that can be sent: without what the image has, or (``flatten``) with everything."""
    disk = load(path)
    header = replace(disk.header, base_image_id=None, inherited=[])
    if flatten or disk.header.base_image_id is None:
        copy = Disk(header, disk.all_lines)
    else:
        header.base_image_id = disk.header.base_image_id
        copy = Disk(header, disk.lines)
    target.write_bytes(copy.exported())
    return copy


def _lines_of_image(source: RootDisk) -> list[str]:
    if source.base is None:
        return []
    try:
        image = decode(source.base.path.read_bytes()) if _is_ours(source.base.path) else None
    except FileNotFoundError:
        raise GuestFailed(
            f"The base image {source.base_image_id} is missing in the image cache.", details=str(source.base.path)
        ) from None
    return image.all_lines if image is not None else []


def _is_ours(path: Path) -> bool:
    """Whether an image is a simulated disk. Images can be large, so only the beginning is read."""
    with path.open("rb") as file:
        found = file.read(len(EXPORTED) + len(MAGIC) + 20)
        if found.startswith(qcow2.MAGIC) and not found.startswith(EXPORTED):
            # Uploaded while the guest ran: the first cluster is the header.
            file.seek(qcow2.CLUSTER)
            found = file.read(len(EXPORTED) + len(MAGIC) + 20)
        return MAGIC.encode() in found


def _received(snapshot: Path, snapshot_format: str) -> Disk:
    if snapshot_format != QCOW2:
        raise ImageRefused(f"{_RECEIVED} was refused: hosts send qcow2, not {snapshot_format}.", details=str(snapshot))
    try:
        disk = decode(snapshot.read_bytes())
    except FileNotFoundError:
        raise GuestFailed("The snapshot to start from is missing.", details=str(snapshot)) from None
    if disk is None:
        raise GuestFailed("The snapshot to start from is damaged.", details=str(snapshot))
    return disk
