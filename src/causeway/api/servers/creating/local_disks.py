"""Ephemeral disks and swap of new servers: what the flavor has, and how the user divides it.

Messages and codes are Nova's. Source: Compute API guide, "Block Device Mapping".
"""

from __future__ import annotations

from causeway import errors
from causeway.model.block_device import BlockDevice
from causeway.model.flavor import Flavor

# File systems, as in Nova; None and empty: the host's default.
FORMATS = (None, "", "ext2", "ext3", "ext4", "ntfs", "vfat", "xfs")


def complete(devices: list[BlockDevice], flavor: Flavor, limit: int) -> list[BlockDevice]:
    """The devices, with the flavor's ephemeral disk and swap unless the request has its own. Blank local ones get their sizes.

    ``limit``: how many may be local (-1: any number). Raises BadRequest if there are more, or more than the flavor allows.
    """
    devices = list(devices)
    if flavor.ephemeral_gb and not any(device.is_ephemeral for device in devices):
        devices.append(_blank(flavor.ephemeral_gb, None))
    if flavor.swap and not any(device.is_swap for device in devices):
        devices.append(_blank(flavor.swap, "swap"))
    for device in devices:
        if device.is_ephemeral and device.guest_format not in FORMATS:
            raise errors.BadRequest(f"Block Device Mapping is Invalid: {device.guest_format} format is not supported")
        if device.is_blank_local:
            device.boot_index = -1
            if device.volume_size is None:
                device.volume_size = flavor.swap if device.is_swap else flavor.ephemeral_gb
    if sum(device.volume_size or 0 for device in devices if device.is_ephemeral) > flavor.ephemeral_gb:
        raise errors.BadRequest(
            "Ephemeral disks requested are larger than the instance type allows. If no size is given in one block device "
            "mapping, flavor ephemeral size will be used."
        )
    swap = [device for device in devices if device.is_swap]
    if len(swap) > 1:
        raise errors.BadRequest("Block Device Mapping is Invalid: More than one swap drive requested.")
    if swap and (swap[0].volume_size or 0) > flavor.swap:
        raise errors.BadRequest("Swap drive requested is larger than instance type allows.")
    if 0 <= limit < sum(not device.is_volume for device in devices):
        raise errors.BadRequest(
            "Block Device Mapping is Invalid: You specified more local devices than the limit allows"
        )
    # A disk that the flavor has no size for is not made.
    return [device for device in devices if not device.is_blank_local or device.volume_size]


def _blank(size: int, guest_format: str | None) -> BlockDevice:
    nobody = "00000000-0000-0000-0000-000000000000"
    return BlockDevice(
        uuid=nobody,
        instance_uuid=nobody,
        source_type="blank",
        destination_type="local",
        boot_index=-1,
        device_type="disk",
        volume_size=size,
        guest_format=guest_format,
        delete_on_termination=True,
    )
