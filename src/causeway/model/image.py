"""Images."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


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
