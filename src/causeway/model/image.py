"""Images."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

RAW, QCOW2, ISO = "raw", "qcow2", "iso"
#: the values of ``disk_format`` that hosts can be set to accept
BOOTABLE_FORMATS = (RAW, QCOW2, ISO)
# Values of ``container_format``: the data is not a disk, but has one in it.
_CONTAINERS = ("ova", "docker", "compressed")
_ENCRYPTION_KEY = "cinder_encryption_key_id"


@dataclass
class ImageMeta:
    """The part of an image that is stored with a server. Sizes in bytes, min_ram in MiB, min_disk in GiB."""

    id: str
    name: str = ""
    status: str = "active"
    disk_format: str | None = None
    container_format: str | None = None
    size: int = 0
    virtual_size: int | None = None
    min_ram: int = 0
    min_disk: int = 0
    checksum: str | None = None
    os_hash_algo: str | None = None
    os_hash_value: str | None = None
    owner: str | None = None
    visibility: str = "private"
    properties: dict[str, Any] = field(default_factory=dict)

    def misfit(self, allowed: Collection[str]) -> str | None:
        """Why no local disk can be made from the image, as far as its record says; None: nothing is known against it.

        ``allowed``: the formats that hosts accept.
        """
        if self.properties.get(_ENCRYPTION_KEY):
            return "Direct booting of an image uploaded from an encrypted volume is unsupported."
        if self.container_format in _CONTAINERS:
            return f"Its container_format is {self.container_format}: its data is not a disk. Make an image of the disk (bare)."
        if self.disk_format is not None and self.disk_format not in allowed:
            return format_misfit(self.disk_format, allowed)
        return None

    @property
    def disk_bytes(self) -> int:
        """The bytes of a disk made from the image, as far as its record says."""
        return max(self.size, self.virtual_size or 0)


def format_misfit(disk_format: str | None, allowed: Collection[str]) -> str:
    known = ", ".join(name for name in BOOTABLE_FORMATS if name in allowed)
    return f"Its disk_format is {disk_format or 'not known'}, and servers boot only {known} here. Convert it to one of these."
