"""Images of servers: their properties are in the system metadata, and what else is known is in the request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from causeway.model.image import ImageMeta

_PREFIX = "image_"
_NUMBERS, _TEXTS = ("min_disk", "min_ram"), ("disk_format", "container_format")
#: a key of system metadata: the image that the server was first made from
BASE_IMAGE = "image_base_image_ref"
# No properties: they are there for Nova itself.
_OWN = ("base_image_ref", "id")


def image_of(system_metadata: Mapping[str, str], image_ref: str, requested: Mapping[str, Any] | None) -> ImageMeta:
    """``requested``: the image in the server's request, which may be another one's: then only its own is known."""
    found = {name.removeprefix(_PREFIX): value for name, value in system_metadata.items() if name.startswith(_PREFIX)}
    numbers = {name: _number(found.pop(name, None)) for name in _NUMBERS}
    texts = {name: found.pop(name, None) for name in _TEXTS}
    for name in _OWN:
        found.pop(name, None)
    known = requested if requested is not None and requested.get("id") == image_ref else {}
    return ImageMeta(
        id=image_ref,
        name=known.get("name") or "",
        size=known.get("size") or 0,
        checksum=known.get("checksum"),
        owner=known.get("owner"),
        disk_format=texts["disk_format"],
        container_format=texts["container_format"],
        min_disk=numbers["min_disk"],
        min_ram=numbers["min_ram"],
        properties=found,
    )


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.isascii() and text.isdecimal() else 0
