"""The disks of a rescued guest."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import libvirt

from causeway.errors import NotImplementedHere
from causeway.model.rescue import RescueImage
from causeway.virt.libvirt import power
from causeway.virt.libvirt.connection import Connection
from causeway.virt.libvirt.guest_xml.domain_xml import GuestDisk, target_of_file

_PREFIX_OF_BUS = {"virtio": "vd", "scsi": "sd", "sata": "sd", "usb": "sd", "ide": "hd", "fdc": "fd"}
# The config drive has this name.
_KEPT_FREE = "hda"


def check(image: RescueImage) -> None:
    """Raises `NotImplementedHere` if guests can't have a rescue disk of this kind."""
    if image.device == "lun":
        raise NotImplementedHere(
            f"Image {image.image_id} wants to be a lun (hw_rescue_device): the hypervisor makes those of block devices only."
        )


def arranged(disks: list[GuestDisk], path: Path, image: RescueImage, *, cache: str, machine: str) -> list[GuestDisk]:
    """The guest's disks and the rescue disk at ``path``, which it boots. ``disks``: its own disks, the root disk first."""
    rescue = GuestDisk("", path, "qcow2", is_root=True, cache=cache)
    others = [dataclasses.replace(disk, is_root=False) for disk in disks]
    targets = {disk.target for disk in disks}
    if image.is_stable:
        rescue.device = image.device or "disk"
        rescue.bus = image.bus or _usual_bus(rescue.device, machine)
        rescue.read_only = rescue.device == "cdrom"
        rescue.target = _free(_PREFIX_OF_BUS[rescue.bus], targets)
        return [*others, rescue]
    own = others[0]
    rescue.target, rescue.bus = own.target, own.bus
    own.target = _free(own.target[:2], targets)
    return [rescue, own]


def has_disk(connection: Connection, uuid: str, path: Path) -> bool:
    """Whether the guest has the disk, now or from its next start on."""

    def look(hypervisor: Any) -> bool:
        domain = power.find(hypervisor, uuid)
        if domain is None:
            return False
        flags = [libvirt.VIR_DOMAIN_XML_INACTIVE] if domain.isPersistent() else []
        flags += [0] if domain.isActive() else []
        return any(target_of_file(domain.XMLDesc(flag), path) is not None for flag in flags)

    return connection.call(f"say whether guest {uuid} is rescued", look, again=True)


def _usual_bus(device: str, machine: str) -> str:
    """The bus of a rescue disk whose image names none, as in Nova."""
    if device == "floppy":
        return "fdc"
    if device == "cdrom":
        return "sata" if "q35" in machine else "ide"
    return "virtio"


def _free(prefix: str, taken: set[str]) -> str:
    return next(
        name for name in (f"{prefix}{letter}" for letter in ascii_lowercase) if name not in taken and name != _KEPT_FREE
    )
