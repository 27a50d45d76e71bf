"""``block_device_mapping_v2``: a device as a user asks for it or an image brings it along.

Messages and codes are Nova's. Source: Compute API guide, "Block Device Mapping".
"""

from __future__ import annotations

from typing import Any

from causeway import errors
from causeway.api.schemas.common import to_bool
from causeway.api.servers.creating import legacy_devices
from causeway.api.servers.creating.legacy_devices import new_device
from causeway.api.validation import is_uuid
from causeway.model.block_device import BlockDevice
from causeway.model.image import ImageMeta

# Those of Nova. A hypervisor may not have all of them.
DISK_BUSES = frozenset({"fdc", "ide", "lxc", "sata", "scsi", "uml", "usb", "virtio", "xen"})


def invalid(reason: str) -> errors.BadRequest:
    return errors.BadRequest(f"Block Device Mapping is Invalid: {reason}")


def read(given: dict[str, Any], image: ImageMeta | None) -> BlockDevice:
    """One device. Raises BadRequest. ``image``: the server's (imageRef)."""
    source = given.get("source_type")
    identifier = given.get("uuid")
    if source is None:
        for kind in ("volume", "snapshot", "image"):
            if given.get(f"{kind}_id"):
                source, identifier = kind, given[f"{kind}_id"]
                break
        else:
            raise errors.BadRequest("Block Device Mapping is Invalid: Invalid source_type field.")
    destination = given.get("destination_type") or ("local" if source in ("image", "blank") else "volume")
    identifier = identifier or given.get(f"{source}_id")
    if source == "blank":
        if identifier:
            raise invalid("Invalid device UUID.")
    elif not identifier:
        raise invalid("Missing device UUID.")
    elif not is_uuid(str(identifier)):
        raise invalid("Invalid device UUID.")
    boot_index = _boot_index(given.get("boot_index"))
    if source in ("volume", "snapshot") and destination == "local":
        raise invalid(f"Mapping {source} to local is not supported.")
    if source == "image" and destination == "local":
        if boot_index != 0 or image is None:
            raise invalid("Mapping image to local is not supported.")
        if identifier != image.id:
            raise invalid(f"image {identifier} can't be the local root disk of a server of image {image.id}.")
    if source == "blank" and destination == "local" and boot_index == 0:
        raise invalid("A blank local disk can't be booted from.")
    name = given.get("device_name")
    if image is not None and given.get("destination_type") == "volume" and legacy_devices.is_root_name(name, image):
        raise errors.BadRequest(f"The volume cannot be assigned the same device name as the root device {name}")
    if given.get("disk_bus") and given["disk_bus"] not in DISK_BUSES:
        raise invalid(f"The provided disk bus {given['disk_bus']} is not valid.")
    size = given.get("volume_size")
    if size is not None and int(size) < 1:
        raise invalid("The size of a volume is at least 1 GiB.")
    if destination == "volume" and source in ("image", "blank") and not size:
        what = (
            "Images with destination_type 'volume'"
            if source == "image"
            else "Blank volumes (source: 'blank', dest: 'volume')"
        )
        raise errors.BadRequest(f"{what} need to have a non-zero size specified")
    if given.get("volume_type") and destination != "volume":
        raise errors.BadRequest("Specifying a volume_type with destination_type=local is not supported.")
    return new_device(
        source_type=source,
        destination_type=destination,
        boot_index=boot_index,
        device_name=name,
        volume_id=identifier if source == "volume" else None,
        snapshot_id=identifier if source == "snapshot" else None,
        image_id=identifier if source == "image" else None,
        volume_size=None if size is None else int(size),
        volume_type=given.get("volume_type"),
        delete_on_termination=to_bool(given.get("delete_on_termination", destination == "local")),
        tag=given.get("tag"),
        disk_bus=given.get("disk_bus"),
        device_type=given.get("device_type"),
        guest_format=given.get("guest_format"),
    )


def _boot_index(value: Any) -> int | None:
    if value is None:
        return None
    number = int(value)
    if abs(number) > 1000:
        raise errors.BadRequest("Boot index is invalid.")
    return number if number >= 0 else None
