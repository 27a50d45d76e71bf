"""Checks whether this host's copy of a server is enough to run it, before a move destroys the other copy.

A running guest has its disks open: the hypervisor says whether they work, and only their headers are read here. The disks of a
guest that is off are checked by QEMU's tool.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import libvirt

from causeway.errors import GuestFailed
from causeway.virt.driver import ExpectedDisk
from causeway.virt.libvirt import power
from causeway.virt.libvirt.connection import Connection
from causeway.virt.libvirt.guest_xml.domain_xml import device_of_serial
from causeway.virt.libvirt.guest_xml.rbd_source import is_in_ceph
from causeway.virt.libvirt.storage import qemu_img

_MIB = 2**20


def of_guest(
    connection: Connection, uuid: str, folder: Path, disks: list[ExpectedDisk], volume_ids: list[str], timeout: float
) -> list[str]:
    """What is wrong with the disks of a guest, whether it runs or not. ``timeout``: seconds to check a disk."""
    runs, found = _asked(connection, uuid, [folder / each.name for each in disks], volume_ids)
    for disk in disks:
        found += _of_disk(folder / disk.name, disk.size_mb * _MIB, None if runs else timeout)
    return found


def of_folder(folder: Path, disks: list[ExpectedDisk], timeout: float) -> list[str]:
    """What is wrong with disks that no guest uses. ``timeout``: seconds to check a disk."""
    return [fault for disk in disks for fault in _of_disk(folder / disk.name, disk.size_mb * _MIB, timeout)]


def _asked(connection: Connection, uuid: str, paths: list[Path], volume_ids: list[str]) -> tuple[bool, list[str]]:
    """(whether the guest has its disks open, what the hypervisor finds wrong with them)."""

    def ask(hypervisor: Any) -> tuple[bool, list[str]]:
        domain = power.find(hypervisor, uuid)
        if domain is None:
            return False, []
        xml = domain.XMLDesc()
        found = [
            f"volume {each} is not connected to the guest" for each in volume_ids if not device_of_serial(xml, each)
        ]
        if not domain.isActive():
            return False, found
        state, reason = domain.state()
        if (state, reason) == (libvirt.VIR_DOMAIN_PAUSED, libvirt.VIR_DOMAIN_PAUSED_IOERROR):
            found.append("the guest stands still because of an I/O error")
        found += [f"disk {target} of the guest had an I/O error" for target in domain.diskErrors()]
        for path in [] if is_in_ceph(xml) else paths:
            try:
                domain.blockInfo(str(path))
            except libvirt.libvirtError as error:
                found.append(f"the hypervisor can't describe {path}: {error}")
        return True, found

    return connection.call(f"describe the disks of guest {uuid}", ask, again=True)


def _of_disk(path: Path, size: int, check_within: float | None) -> list[str]:
    """What is wrong with one disk. ``size``: the bytes that it must have at least.

    ``check_within``: seconds to read all its tables (None: a guest uses them, so they are not read).
    """
    try:
        header = qemu_img.info(path)
        if int(header["virtual-size"]) < size:
            return [f"{path} is smaller than {size // _MIB} MiB"]
        below = qemu_img.layer_in(header, path)
        if below is not None and not below.path.is_file():
            return [f"{below.path}, which {path} stands on, is missing"]
        if check_within is not None:
            qemu_img.check(path, check_within)
    except GuestFailed as failure:
        return [f"{failure.message} {failure.details}"]
    return []
