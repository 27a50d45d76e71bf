"""The head of a file in which libvirt saved a guest's memory, of a guest that another host saved.

::

    "LibvirtQemudSave", version, length, was running, program, place of the cookie, 14 unused numbers (32 bits each)
    definition (XML) \\0 cookie (XML) \\0 filling        `length` bytes
    QEMU's migration stream

libvirt reads the definition whenever it opens the file, also if it is given another one, and then runs the emulator that the
definition names, to learn what it can do. It reads as many bytes as the length says, and starts the program that the number
selects to unpack the rest. So `adopt` checks all of that and replaces definition and cookie before libvirt sees the file.

QEMU's stream is left as it is. QEMU reads it as it would in a live migration, in the process of this guest, which is confined as
that of any guest: whoever controls the source controls the guest, and at worst its QEMU process.

Source: libvirt, ``src/qemu/qemu_saveimage.c`` and ``.h``.
"""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from causeway.errors import GuestRefused

_MAGIC = b"LibvirtQemudSave"
_NUMBERS = struct.Struct("<19I")
_HEAD = len(_MAGIC) + _NUMBERS.size
_VERSION = 2
# What QEMU writes and reads first.
_STREAM = b"QEVM"
# The stream is not packed: no program unpacks it.
_RAW = 0
# Bytes of definition, cookie and filling. libvirt fills them up to a MiB at most.
_LONGEST = 4 << 20
_BLOCK = 1 << 16


@dataclass(frozen=True)
class Head:
    """``length``: bytes between the numbers and the stream."""

    xml: str
    cookie: str | None
    length: int
    was_running: int


def read(path: Path) -> Head:
    """Raises `GuestRefused` if the file does not begin as libvirt would have it, or has to be unpacked."""
    with path.open("rb") as file:
        begin = file.read(_HEAD)
        if len(begin) < _HEAD or begin[: len(_MAGIC)] != _MAGIC:
            raise _refused("it does not begin as such a file does")
        version, length, was_running, program, cookie_at, *_unused = _NUMBERS.unpack_from(begin, len(_MAGIC))
        if version != _VERSION:
            raise _refused(f"it has version {version}, and not {_VERSION}")
        if program != _RAW:
            raise _refused(f'it is packed (form {program}): save_image_format in the source\'s qemu.conf must be "raw"')
        if not 0 < length <= _LONGEST or was_running not in (0, 1):
            raise _refused(f"{length} bytes are said to describe the guest, which was running: {was_running}")
        data = file.read(length)
        stream = file.read(len(_STREAM))
    if stream != _STREAM:
        raise _refused(f"QEMU's stream does not begin behind {length} bytes")
    if len(data) < length or cookie_at >= length:
        raise _refused(f"it ends before {length} bytes, or the cookie is at {cookie_at}")
    xml, cookie = data[: cookie_at or length], data[cookie_at:] if cookie_at else None
    return Head(_text(xml), None if cookie is None else _text(cookie), length, was_running)


def adopt(path: Path, definition: Callable[[str], str], cookie: Callable[[str, str], str]) -> None:
    """Replaces the definition in a file by ``definition(that in it)``, and the cookie by ``cookie(that in it, new definition)``.

    May be repeated. Raises `GuestRefused` for a file that is not accepted, which is not changed then.
    """
    head = read(path)
    xml = definition(head.xml)
    data = xml.encode() + b"\0"
    cookie_at = 0
    if head.cookie is not None:
        cookie_at = len(data)
        data += cookie(head.cookie, xml).encode() + b"\0"
    if len(data) <= head.length:
        with path.open("r+b") as file:
            file.write(_begin(head.length, head.was_running, cookie_at) + data.ljust(head.length, b"\0"))
        return
    # The paths of this host are so much longer: the stream moves to another file.
    data = data.ljust(-(-len(data) // _BLOCK) * _BLOCK, b"\0")
    other = path.with_name(f"{path.name}.longer")
    with path.open("rb") as source, other.open("wb") as target:
        os.fchmod(target.fileno(), 0o600)
        target.write(_begin(len(data), head.was_running, cookie_at) + data)
        source.seek(_HEAD + head.length)
        shutil.copyfileobj(source, target, 1 << 20)
    other.replace(path)


def _begin(length: int, was_running: int, cookie_at: int) -> bytes:
    return _MAGIC + _NUMBERS.pack(_VERSION, length, was_running, _RAW, cookie_at, *[0] * 14)


def _text(data: bytes) -> str:
    try:
        return data.split(b"\0", 1)[0].decode()
    except UnicodeDecodeError as failure:
        raise _refused(f"its description is no text: {failure}") from failure


def _refused(why: str) -> GuestRefused:
    return GuestRefused("The memory of the guest, which another host saved, is not accepted here.", details=why)
