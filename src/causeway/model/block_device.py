"""Disks and volumes of servers.

A server's local disks have names on its host: ``disk`` (root), ``disk.eph0``, ``disk.eph1``, ... and ``disk.swap``.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass
class BlockDevice:
    """A block device mapping (BDM). ``volume_size`` in GiB; for swap in MiB, as in flavors."""

    uuid: str
    instance_uuid: str
    source_type: str  # image | volume | snapshot | blank
    destination_type: str  # local | volume
    boot_index: int | None = None
    device_name: str | None = None
    volume_id: str | None = None
    volume_size: int | None = None
    volume_type: str | None = None
    snapshot_id: str | None = None
    image_id: str | None = None
    connection_info: dict[str, Any] | None = None
    attachment_id: str | None = None
    delete_on_termination: bool = False
    tag: str | None = None
    disk_bus: str | None = None
    device_type: str | None = None
    guest_format: str | None = None
    created_at: datetime | None = None
    # Other servers may have the volume too.
    multiattach: bool = False

    @property
    def is_root(self) -> bool:
        return self.boot_index == 0

    @property
    def is_volume(self) -> bool:
        return self.destination_type == "volume"

    @property
    def is_encrypted(self) -> bool:
        """Whether block storage says so. Asked of a connected volume."""
        return bool(((self.connection_info or {}).get("data") or {}).get("encrypted"))

    @property
    def is_blank_local(self) -> bool:
        """An ephemeral disk or swap."""
        return self.source_type == "blank" and self.destination_type == "local"

    @property
    def is_swap(self) -> bool:
        return self.is_blank_local and self.guest_format == "swap"

    @property
    def is_ephemeral(self) -> bool:
        return self.is_blank_local and self.guest_format != "swap"


def is_volume_backed(block_devices: list[BlockDevice]) -> bool:
    """Whether the root disk is a volume."""
    return any(bdm.is_root and bdm.is_volume for bdm in block_devices)


def has_local_disks(block_devices: list[BlockDevice]) -> bool:
    """Whether the root disk, an ephemeral disk or swap is on the server's host."""
    return not is_volume_backed(block_devices) or any(device.is_blank_local for device in block_devices)


def local_disk_names(block_devices: list[BlockDevice]) -> list[tuple[str, BlockDevice]]:
    """(name, device) of ephemeral disks, which are numbered in their order, and of swap."""
    ephemeral = [device for device in block_devices if device.is_ephemeral]
    swap = [device for device in block_devices if device.is_swap]
    return [(f"disk.eph{number}", device) for number, device in enumerate(ephemeral)] + [
        ("disk.swap", device) for device in swap[:1]
    ]
