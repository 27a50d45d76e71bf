"""Limits what a running guest writes to its disks, beside the limits that its definition has.

Only the running guest is changed. So one that boots has its own limits again, and these are read from its definition.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from typing import Any

import libvirt

from causeway.virt.libvirt import power
from causeway.virt.libvirt.connection import Connection
from causeway.virt.libvirt.storage.disks import InstanceDisks

_ALL, _READ, _WRITTEN = "total_bytes_sec", "read_bytes_sec", "write_bytes_sec"


def limit(connection: Connection, disks: InstanceDisks, uuid: str, bytes_per_second: int | None) -> None:
    """Limits what is written to each local disk; None: only its definition limits it. A guest that is off is no failure."""

    def change(hypervisor: Any) -> None:
        domain = power.find(hypervisor, uuid)
        if domain is None or not domain.isActive():
            return
        for target in _local_targets(domain.XMLDesc(), disks, uuid):
            own = domain.blockIoTune(target, libvirt.VIR_DOMAIN_AFFECT_CONFIG)
            domain.setBlockIoTune(target, _lowered(own, bytes_per_second), libvirt.VIR_DOMAIN_AFFECT_LIVE)

    connection.call(f"limit what guest {uuid} writes", change, again=True)


def _local_targets(xml: str, disks: InstanceDisks, uuid: str) -> Iterator[str]:
    """The device names of the guest's own disks; its volumes are not concerned."""
    folder, in_storage = f"{disks.folder(uuid)}/", {f"{uuid}_{name}" for name in disks.in_storage(uuid)}
    for disk in ET.fromstring(xml).iterfind("devices/disk[@device='disk']"):
        source, target = disk.find("source"), disk.find("target")
        if source is None or target is None:
            continue
        if source.get("file", "").startswith(folder) or source.get("name", "").rpartition("/")[2] in in_storage:
            yield target.get("dev", "")


def _lowered(own: Mapping[str, Any], bytes_per_second: int | None) -> dict[str, int]:
    """All limits of bytes, since libvirt sets them together."""
    limits = {name: int(own.get(name, 0)) for name in (_ALL, _READ, _WRITTEN)}
    if bytes_per_second is not None:
        # There is either one of all bytes, or one of each direction.
        name = _ALL if limits[_ALL] else _WRITTEN
        limits[name] = min(limits[name] or bytes_per_second, bytes_per_second)
    return limits
