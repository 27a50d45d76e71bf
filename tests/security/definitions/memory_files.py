"""Memory files as libvirt writes them, and as a compromised host may change them.

Source: libvirt, `src/qemu/qemu_saveimage.h` (`virQEMUSaveHeader`): magic, five numbers, fourteen unused ones; then the XML and
the cookie, each with a null byte behind it, and filling.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from pathlib import Path

MAGIC = b"LibvirtQemudSave"
_NUMBERS = struct.Struct("<19I")
_HEAD = len(MAGIC) + _NUMBERS.size


@dataclass(frozen=True)
class MemoryFile:
    xml: str
    cookie: str | None = None
    stream: bytes = b"QEVM"
    magic: bytes = MAGIC
    version: int = 2
    was_running: int = 1
    compressed: int = 0
    # None: those that fit
    data_length: int | None = None
    cookie_at: int | None = None

    @classmethod
    def read(cls, path: Path) -> MemoryFile:
        content = path.read_bytes()
        version, length, running, compressed, cookie_at, *_ = _NUMBERS.unpack(content[len(MAGIC) : _HEAD])
        data = content[_HEAD : _HEAD + length]
        xml = data.split(b"\0", 1)[0].decode()
        cookie = data[cookie_at:].split(b"\0", 1)[0].decode() if cookie_at else None
        return cls(xml, cookie, content[_HEAD + length :], content[:16], version, running, compressed)

    def with_domain(self, old: str, new: str) -> MemoryFile:
        assert old in self.xml, f"the definition has no {old}"
        return replace(self, xml=self.xml.replace(old, new, 1))

    def write(self, path: Path) -> Path:
        data = self.xml.encode() + b"\0"
        cookie_at = len(data) if self.cookie is not None else 0
        data += b"" if self.cookie is None else self.cookie.encode() + b"\0"
        # As far as libvirt reads at once.
        data += b"\0" * (-(_HEAD + len(data)) % 65536 + 4096)
        length = len(data) if self.data_length is None else self.data_length
        at = cookie_at if self.cookie_at is None else self.cookie_at
        numbers = _NUMBERS.pack(self.version, length, self.was_running, self.compressed, at, *[0] * 14)
        path.write_bytes(self.magic + numbers + data + self.stream)
        return path
