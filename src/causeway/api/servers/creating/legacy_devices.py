"""``block_device_mapping``, the older form of ``block_device_mapping_v2``.

Its root disk is the device with the root disk's name, or the image if there is none. Messages and codes are Nova's.
"""

from __future__ import annotations

import re
from typing import Any

from causeway import errors
from causeway.api.schemas.common import to_bool
from causeway.model.block_device import BlockDevice
from causeway.model.image import ImageMeta

_BLANK = "00000000-0000-0000-0000-000000000000"
_ROOT = "vda"
_EPHEMERAL = re.compile(r"ephemeral(0|[1-9][0-9]*)")


def new_device(**fields: Any) -> BlockDevice:
    """A device that has no server yet."""
    return BlockDevice(uuid=_BLANK, instance_uuid=_BLANK, **fields)


def read(given: list[dict[str, Any]], image: ImageMeta | None) -> list[BlockDevice]:
    """The devices, with the image as the local root disk unless a device is the root disk. Raises BadRequest.

    ``image``: the server's (imageRef).
    """
    devices = [read_one(each, image) for each in given if "no_device" not in each]
    if image is None or any(device.is_root for device in devices):
        return devices
    root = new_device(
        source_type="image",
        destination_type="local",
        boot_index=0,
        image_id=image.id,
        device_type="disk",
        delete_on_termination=True,
    )
    return [root, *devices]


def is_root_name(name: str | None, image: ImageMeta | None) -> bool:
    """Whether a device of that name is the root disk: vda, or what the image calls it."""
    root = str(image.properties.get("root_device_name") or _ROOT) if image is not None else _ROOT
    return (name or "").removeprefix("/dev/") == root.removeprefix("/dev/")


def read_one(given: dict[str, Any], image: ImageMeta | None) -> BlockDevice:
    """One device. ``image`` has the name of the root disk."""
    size = given.get("volume_size")
    common = {"device_name": given.get("device_name"), "volume_size": None if size is None else int(size)}
    virtual = given.get("virtual_name") or ""
    if virtual == "swap" or _EPHEMERAL.fullmatch(virtual):
        return new_device(
            **common,
            source_type="blank",
            destination_type="local",
            guest_format="swap" if virtual == "swap" else None,
            delete_on_termination=True,
        )
    if not given.get("snapshot_id") and not given.get("volume_id"):
        raise errors.BadRequest("Block Device Mapping is Invalid: Unrecognized legacy format.")
    return new_device(
        **common,
        source_type="snapshot" if given.get("snapshot_id") else "volume",
        destination_type="volume",
        boot_index=0 if is_root_name(given.get("device_name"), image) else None,
        volume_id=None if given.get("snapshot_id") else given.get("volume_id"),
        snapshot_id=given.get("snapshot_id"),
        delete_on_termination=to_bool(given.get("delete_on_termination", False)),
    )
