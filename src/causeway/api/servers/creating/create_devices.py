"""The disks of new servers: from ``block_device_mapping_v2``, the legacy form, and the image to `BlockDevice`.

Messages and codes are Nova's. Source: Compute API guide, "Block Device Mapping".
"""

from __future__ import annotations

import uuid as uuids
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from causeway import errors
from causeway.api.request import ApiRequest
from causeway.api.servers.creating import image_devices, legacy_devices, local_disks, requested_devices
from causeway.api.servers.creating.requested_devices import invalid
from causeway.api.servers.flavors_and_images import check_bootable, check_fits
from causeway.api.validation import is_uuid
from causeway.clients.volume import Volume
from causeway.clients.volume_snapshots import Snapshot
from causeway.model.block_device import BlockDevice
from causeway.model.flavor import Flavor
from causeway.model.image import ImageMeta

ZERO_DISK = "os_compute_api:servers:create:zero_disk_flavor"


@dataclass
class Disks:
    """``devices`` have no server yet. ``image``: what the root disk is made from, also if that is a volume."""

    devices: list[BlockDevice] = field(default_factory=list)
    image: ImageMeta | None = None
    volume_backed: bool = False
    # The availability zones of existing volumes.
    volume_zones: set[str] = field(default_factory=set)

    def for_server(self, instance_uuid: str) -> list[BlockDevice]:
        """The devices of one of the servers, with identities of their own."""
        return [replace(device, uuid=str(uuids.uuid4()), instance_uuid=instance_uuid) for device in self.devices]


def plan(request: ApiRequest, server: dict[str, Any], flavor: Flavor, count: int) -> Disks:
    """The disks that a create request asks for. Raises BadRequest or Conflict if they can't be made or don't fit the flavor."""
    image = _image(request, server)
    legacy, given = server.get("block_device_mapping"), server.get("block_device_mapping_v2")
    if legacy and given:
        raise errors.BadRequest("Using different block_device_mapping syntaxes is not allowed in the same request.")
    if image is None and not legacy and not given:
        raise errors.BadRequest("Missing imageRef attribute")
    if given:
        # The image becomes a disk only if one of these says so.
        devices = [requested_devices.read(each, image) for each in given if not each.get("no_device")]
    else:
        devices = legacy_devices.read(legacy or [], image)
    image = image or _image_of_root(request, devices)
    devices = image_devices.with_brought(image, devices)
    _check_order(devices)
    root = next(device for device in devices if device.is_root)
    devices = local_disks.complete(devices, flavor, request.services.conf.max_local_block_devices)
    disks = Disks(devices, image, root.is_volume)
    _check_sources(request, disks, count)
    _check_flavor(request, disks, root, flavor)
    return disks


def _image(request: ApiRequest, server: dict[str, Any]) -> ImageMeta | None:
    reference = str(server.get("imageRef") or "")
    if not reference:
        return None
    identifier = reference.rstrip("/").rpartition("/")[2]
    if not is_uuid(identifier):
        raise errors.BadRequest("Invalid imageRef provided.")
    return _usable_image(request, identifier)


def _image_of_root(request: ApiRequest, devices: list[BlockDevice]) -> ImageMeta | None:
    """The image that the root volume is to be made from, if any."""
    root = next((device for device in devices if device.is_root), None)
    return None if root is None or root.image_id is None else _usable_image(request, root.image_id)


def _usable_image(request: ApiRequest, image_id: str) -> ImageMeta:
    try:
        image: ImageMeta = request.services.images.show(request.context, image_id)
    except errors.ImageNotFound as missing:
        raise errors.BadRequest(f"Can not find requested image: {missing.message}") from missing
    if image.status != "active":
        raise errors.BadRequest(f"Image {image_id} is not active.")
    return image


def _check_order(devices: list[BlockDevice]) -> None:
    order = sorted(device.boot_index for device in devices if device.boot_index is not None)
    if not order or order != list(range(len(order))):
        raise invalid("Boot sequence for the instance and image/block device mapping combination is not valid.")
    names = [device.device_name for device in devices if device.device_name]
    if len(set(names)) != len(names):
        raise invalid("Device names must differ.")
    volumes = [device.volume_id for device in devices if device.volume_id]
    if len(set(volumes)) != len(volumes):
        raise invalid("A volume may be attached only once.")


def _check_sources(request: ApiRequest, disks: Disks, count: int) -> None:
    """Raises BadRequest or Conflict if what a device is made from is missing or can't be used.

    The source of the root disk becomes the server's image, unless the request has one (imageRef): that one says what the guest
    needs, whatever is on its disk.
    """
    has_image = disks.image is not None
    for device in disks.devices:
        if device.volume_id is not None:
            volume = _check_volume(request, disks, device, count)
            if device.is_root and not has_image:
                if not volume.bootable:
                    raise errors.BadRequest(f"Block Device {device.volume_id} is not bootable.")
                disks.image = _image_of_volume(volume.image_metadata)
        elif device.snapshot_id is not None:
            snapshot = _check_snapshot(request, device)
            if device.is_root and not has_image:
                disks.image = _image_of_snapshot(request, snapshot)
        elif device.image_id is not None:
            image = disks.image
            if image is None or device.image_id != image.id:
                image = _usable_image(request, device.image_id)
            if image_devices.has_root(image):
                raise invalid(f"image {image.id} has no data: it names the volumes of a server.")


def _check_snapshot(request: ApiRequest, device: BlockDevice) -> Snapshot:
    """The snapshot that a volume is made from; its size becomes the volume's, unless the request has one."""
    snapshot_id = str(device.snapshot_id)
    try:
        snapshot: Snapshot = request.services.volumes.show_snapshot(request.context, snapshot_id)
    except errors.NotFound as missing:
        raise invalid(f"failed to get snapshot {snapshot_id}.") from missing
    device.volume_size = device.volume_size or snapshot.size
    return snapshot


def _image_of_snapshot(request: ApiRequest, snapshot: Snapshot) -> ImageMeta:
    try:
        volume = request.services.volumes.show(request.context, snapshot.volume_id)
    except errors.VolumeNotFound as missing:
        raise invalid(f"failed to get volume {snapshot.volume_id}.") from missing
    return _image_of_volume(volume.image_metadata)


def _check_volume(request: ApiRequest, disks: Disks, device: BlockDevice, count: int) -> Volume:
    volume_id = str(device.volume_id)
    if count > 1:
        raise errors.BadRequest("Cannot attach one or more volumes to multiple instances")
    try:
        volume: Volume = request.services.volumes.show(request.context, volume_id)
    except errors.VolumeNotFound as missing:
        raise invalid(f"failed to get volume {volume_id}.") from missing
    if volume.multiattach and request.version < (2, 60):
        raise errors.Conflict(f"Volume {volume_id} is multiattach: version 2.60 or later is needed to use it.")
    if volume.status != "available" and not (volume.multiattach and volume.status == "in-use"):
        raise errors.BadRequest(
            f"Invalid volume: volume {volume_id} status must be available to reserve, but the current status is "
            f"{volume.status}."
        )
    device.volume_size, device.multiattach = volume.size, volume.multiattach
    disks.volume_zones |= {volume.availability_zone} if volume.availability_zone else set()
    return volume


def _image_of_volume(metadata: dict[str, str]) -> ImageMeta:
    """The image that a bootable volume was made from, as the volume's metadata describe it."""
    number: Callable[[str], int] = lambda key: int(text) if (text := str(metadata.get(key, ""))).isdecimal() else 0  # noqa: E731
    known = ("image_id", "image_name", "min_ram", "min_disk", "size", "checksum", "disk_format", "container_format")
    return ImageMeta(
        id=metadata.get("image_id", ""),
        name=metadata.get("image_name", ""),
        min_ram=number("min_ram"),
        min_disk=number("min_disk"),
        properties={key: value for key, value in metadata.items() if key not in known},
    )


def _check_flavor(request: ApiRequest, disks: Disks, root: BlockDevice, flavor: Flavor) -> None:
    image = disks.image
    if not disks.volume_backed and flavor.root_gb == 0:
        target = {"project_id": request.project_id, "user_id": request.user_id}
        if not request.allows(ZERO_DISK, target):
            raise errors.Forbidden("Only volume-backed servers are allowed for flavors with zero disk.")
    if image is None:
        return
    if not disks.volume_backed:
        check_bootable(request, image)
    check_fits(flavor, image, volume_backed=disks.volume_backed)
    if disks.volume_backed and root.volume_size is not None and image.min_disk > root.volume_size:
        raise errors.FlavorNotUsable(
            f"Volume is smaller than the minimum size specified in image metadata. Volume size is {root.volume_size} GiB, "
            f"minimum size is {image.min_disk} GiB."
        )
