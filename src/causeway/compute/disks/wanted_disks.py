"""Ephemeral disks and swap: from block device mappings to what a driver makes."""

from __future__ import annotations

from oslo_config import cfg

from causeway.model.block_device import BlockDevice, local_disk_names
from causeway.virt.driver import LocalDisk

_MIB_PER_GIB = 1024


def local_disks(conf: cfg.ConfigOpts, block_devices: list[BlockDevice]) -> list[LocalDisk]:
    """The local disks of a server beside its root disk. Their labels are Nova's (``ephemeral0``, ...)."""
    found = []
    for name, device in local_disk_names(block_devices):
        size = device.volume_size or 0
        found.append(
            LocalDisk(
                name=name,
                device_name=device.device_name or "",
                size_mb=size if device.is_swap else size * _MIB_PER_GIB,
                guest_format=device.guest_format or conf.default_ephemeral_format or None,
                label="" if device.is_swap else f"ephemeral{name.removeprefix('disk.eph')}",
                disk_bus=device.disk_bus,
            )
        )
    return found
