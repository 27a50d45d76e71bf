"""The devices that images bring along for servers made from them (``block_device_mapping``, ``mappings``).

Images of volume-backed servers have no data: they name a snapshot of each volume. Source: Compute API guide, "Block Device
Mapping".
"""

from __future__ import annotations

import json
import re
from typing import Any

from oslo_utils import strutils

from causeway import errors
from causeway.api.servers.creating import legacy_devices, requested_devices
from causeway.model.block_device import BlockDevice
from causeway.model.image import ImageMeta

_LOCAL = re.compile(r"swap|ephemeral(0|[1-9][0-9]*)")


def brought_by(image: ImageMeta) -> list[BlockDevice]:
    """The devices that an image brings along. Raises BadRequest if they can't be read."""
    named = [each for each in _entries(image, "block_device_mapping") if not each.get("no_device")]
    if strutils.bool_from_string(image.properties.get("bdm_v2"), default=False):
        devices = [requested_devices.read(each, None) for each in named]
    else:
        devices = [legacy_devices.read_one(each, image) for each in named]
    return _merged([_local(each) for each in _entries(image, "mappings") if _LOCAL.fullmatch(_virtual(each))], devices)


def has_root(image: ImageMeta) -> bool:
    """Whether servers made from the image boot from a volume that it brings along. It has no data of its own then."""
    return any(device.is_root for device in brought_by(image))


def with_brought(image: ImageMeta | None, devices: list[BlockDevice]) -> list[BlockDevice]:
    """The devices that the image brings along, and those of the request, which replace devices of the same name.

    If the image brings a root disk, the request's disk made from the image is left out: clients ask for it in any case.
    """
    brought = [] if image is None else brought_by(image)
    if any(device.is_root for device in brought):
        devices = [device for device in devices if not (device.is_root and device.source_type == "image")]
    return _merged(brought, devices)


def _merged(overridable: list[BlockDevice], devices: list[BlockDevice]) -> list[BlockDevice]:
    names = {_short(device.device_name) for device in devices if device.device_name}
    return [device for device in overridable if _short(device.device_name) not in names] + devices


def _short(name: str | None) -> str:
    return (name or "").removeprefix("/dev/")


def _virtual(entry: dict[str, Any]) -> str:
    return str(entry.get("virtual", ""))


def _local(entry: dict[str, Any]) -> BlockDevice:
    device = str(entry.get("device", ""))
    name = device if not device or device.startswith("/dev/") else f"/dev/{device}"
    return legacy_devices.read_one({"virtual_name": _virtual(entry), "device_name": name or None}, None)


def _entries(image: ImageMeta, name: str) -> list[dict[str, Any]]:
    value = image.properties.get(name)
    if not value:
        return []
    try:
        found = json.loads(value) if isinstance(value, str) else value
    except ValueError:
        found = None
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise errors.BadRequest(f"Image {image.id} is unacceptable: its property {name} is not a list of devices.")
    return found
