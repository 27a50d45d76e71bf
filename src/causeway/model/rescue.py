"""The rescue image of a server. Its system metadata has it while it is rescued, so that every start of its guest uses it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

IMAGE, DEVICE, BUS = "rescue_image_ref", "rescue_device", "rescue_bus"
SINCE = "rescued_at"
# Properties of images.
DEVICE_PROPERTY, BUS_PROPERTY = "hw_rescue_device", "hw_rescue_bus"
# device -> the buses that it may be on
_BUSES = {
    "disk": ("virtio", "scsi", "sata", "usb", "ide"),
    "cdrom": ("scsi", "sata", "usb", "ide"),
    "floppy": ("fdc",),
    "lun": ("virtio", "scsi"),
}


@dataclass
class RescueImage:
    """``device``, ``bus``: the kind of disk that the image asks for."""

    image_id: str
    device: str | None = None
    bus: str | None = None

    @property
    def is_stable(self) -> bool:
        """Whether the guest keeps all its disks under their names, with the rescue disk as one more.

        If not, it has only the rescue disk, as the first disk, and its own root disk, as the second.
        """
        return self.device is not None or self.bus is not None

    @property
    def misfit(self) -> str | None:
        """Why no guest can have such a disk; None if one can."""
        buses = _BUSES.get(self.device or "disk")
        if buses is None:
            return f"Image {self.image_id} has an unknown {DEVICE_PROPERTY}: {self.device}"
        if self.bus is not None and self.bus not in buses:
            return f"Image {self.image_id} has an {BUS_PROPERTY} that a {self.device or 'disk'} can't be on: {self.bus}"
        return None

    def recorded(self) -> dict[str, str]:
        """The entries for system metadata."""
        known = {IMAGE: self.image_id, DEVICE: self.device, BUS: self.bus}
        return {name: value for name, value in known.items() if value is not None}


def of_image(image_id: str, properties: Mapping[str, Any]) -> RescueImage:
    """The rescue image for an image with these properties."""
    device, bus = properties.get(DEVICE_PROPERTY), properties.get(BUS_PROPERTY)
    return RescueImage(image_id, None if device is None else str(device), None if bus is None else str(bus))


def of_record(system_metadata: Mapping[str, str]) -> RescueImage | None:
    image_id = system_metadata.get(IMAGE)
    if image_id is None:
        return None
    return RescueImage(image_id, system_metadata.get(DEVICE), system_metadata.get(BUS))


def without(system_metadata: Mapping[str, str]) -> dict[str, str]:
    """The system metadata of a server that is no longer rescued."""
    return {name: value for name, value in system_metadata.items() if name not in (IMAGE, DEVICE, BUS, SINCE)}
