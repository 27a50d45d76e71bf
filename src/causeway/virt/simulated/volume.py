"""What simulated guests write to volumes.

A volume is a file of any size, perhaps with an image in it. Lines are in its last 64 KiB (in all of it, if it is smaller), up
to the first NUL byte. So lines neither make a volume larger nor damage the beginning of an image in it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from causeway.errors import GuestFailed

REGION = 64 * 1024
_PART = 1 << 20


def device_path(connection_info: dict[str, Any] | None) -> Path:
    """The file of a connected volume. Raises `GuestFailed` if this host can't open it.

    A simulated host mounts nothing: it opens the file of an NFS share where this machine exports it.
    """
    data = (connection_info or {}).get("data") or {}
    path = data.get("device_path")
    if not path and (connection_info or {}).get("driver_volume_type") == "nfs":
        path = f"{str(data.get('export')).partition(':')[2]}/{data.get('name')}"
    if not path:
        raise GuestFailed("The volume's connection names no device path: a simulated host can't open it.")
    if not Path(path).is_file():
        raise GuestFailed("The volume is not there to be opened.", details=str(path))
    return Path(path)


def read_lines(path: Path) -> list[str]:
    with path.open("rb") as file:
        _, content = _region(file)
    return content.decode(errors="replace").splitlines()


def append_line(path: Path, line: str) -> None:
    with path.open("r+b") as file:
        start, content = _region(file)
        file.seek(start + len(content))
        begin = b"\n" if content and not content.endswith(b"\n") else b""
        file.write(begin + line.encode() + b"\n")


def copy(source: Path, target: Path) -> None:
    """Copies a volume with its lines to one that may be larger. Holes stay holes. The copy is synced when this returns."""
    lines = read_lines(source)
    with source.open("rb") as there, target.open("r+b") as here:
        end, offset = there.seek(0, os.SEEK_END), 0
        while offset < end:
            try:
                offset = there.seek(offset, os.SEEK_DATA)
            except OSError:
                # Only a hole is left.
                break
            hole = there.seek(offset, os.SEEK_HOLE)
            there.seek(offset)
            here.seek(offset)
            while offset < hole:
                part = there.read(min(_PART, hole - offset))
                here.write(part)
                offset += len(part)
        if here.seek(0, os.SEEK_END) != end:
            start, _ = _region(here)
            here.seek(start)
            here.write("".join(f"{line}\n" for line in lines).encode())
        here.flush()
        os.fsync(here.fileno())


def _region(file: Any) -> tuple[int, bytes]:
    """(offset of the first line, all lines as bytes)."""
    size = file.seek(0, 2)
    start = max(size - REGION, 0)
    file.seek(start)
    content: bytes = file.read(REGION)
    return start, content.partition(b"\0")[0]
