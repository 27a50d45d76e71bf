"""Reads metadata from image files."""

import struct
from pathlib import Path

QCOW2_MAGIC = b"QFI\xfb"
SIZE_OFFSET = 24


def virtual_size(path: Path, disk_format: str) -> int | None:
    """The size in bytes of the disk that a guest sees, if the format has it (raw, ISO and qcow2)."""
    if disk_format in ("raw", "iso"):
        return path.stat().st_size
    if disk_format != "qcow2":
        return None
    with path.open("rb") as file:
        header = file.read(SIZE_OFFSET + 8)
    if len(header) < SIZE_OFFSET + 8 or not header.startswith(QCOW2_MAGIC):
        return None
    (size,) = struct.unpack_from(">Q", header, SIZE_OFFSET)
    return int(size)
