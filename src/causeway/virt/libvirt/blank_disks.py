"""Ephemeral disks and swap of guests: qcow2 files beside the root disk, formatted when they are made.

Formats are the field's ([DEFAULT] default_ephemeral_format, ``guest_format`` of block device mappings); labels are its, too.
"""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

from causeway import durable
from causeway.errors import DiskTransferFailed, GuestFailed
from causeway.virt.driver import LocalDisk
from causeway.virt.libvirt.commands import run
from causeway.virt.libvirt.disks import InstanceDisks, grow, image_info, take

LOG = logging.getLogger(__name__)

_MIB = 2**20
# Without a wish of anybody: the first that this host has the tool for.
_PREFERRED = ("ext4", "vfat")


def create(disks: InstanceDisks, uuid: str, wanted: LocalDisk) -> None:
    """Makes the disk, or what is there fit, as `LocalDisk` says. May be repeated.

    Raises `GuestFailed` if a wanted format can't be made here, `DiskTransferFailed` if the content is unfit.
    """
    disk = disks.folder(uuid) / wanted.name
    partial, received = disk.with_name(f"{disk.name}.partial"), disk.with_name(f"{disk.name}.received")
    if wanted.snapshot is not None and wanted.snapshot.exists():
        take(wanted.snapshot, wanted.snapshot_format, received, disks.timeout)
    if received.exists():
        grow(received, wanted.size_mb * _MIB)
        durable.settle(received, disk)
    elif wanted.snapshot is not None and not disk.exists():
        raise DiskTransferFailed(f"Disk {wanted.name} of server {uuid} was not received.", details=str(wanted.snapshot))
    elif disk.exists() and not _is_other_swap(disk, wanted):
        grow(disk, wanted.size_mb * _MIB)
        # Its name, too: perhaps whoever gave it was killed right then.
        durable.sync(disk)
        durable.sync(disk.parent)
    else:
        _make(partial, wanted)
        durable.settle(partial, disk)


def _is_other_swap(disk: Path, wanted: LocalDisk) -> bool:
    return wanted.is_swap and int(image_info(disk)["virtual-size"]) != wanted.size_mb * _MIB


def _make(path: Path, wanted: LocalDisk) -> None:
    """A new disk: formatted as a sparse file of its full size, which leaves a small qcow2 file."""
    raw = path.with_name(f"{path.name}.raw")
    raw.unlink(missing_ok=True)
    # Bug 2152581: a new file, never what an old name still leads to.
    with raw.open("xb") as file:
        file.truncate(wanted.size_mb * _MIB)
    try:
        _format(raw, wanted)
        run("qemu-img", "convert", "-q", "-f", "raw", "-O", "qcow2", raw, path)
    finally:
        raw.unlink(missing_ok=True)


def _format(raw: Path, wanted: LocalDisk) -> None:
    found = _tool_for(wanted)
    if found is None:
        LOG.warning("No tool to format disks is installed: disk %s stays blank", raw)
        return
    tool, guest_format = found
    label = ("-L", wanted.label) if wanted.label else ()
    if guest_format == "swap":
        run(tool, "-q", raw)
    elif guest_format in ("ext2", "ext3", "ext4"):
        run(tool, "-q", "-F", *label, raw)
    elif guest_format == "vfat":
        run(tool, *(("-n", wanted.label) if wanted.label else ()), raw)
    else:
        run(tool, *(("-F",) if guest_format == "ntfs" else ()), *label, raw)


def _tool_for(wanted: LocalDisk) -> tuple[str, str] | None:
    """The program and the format. Raises `GuestFailed` if a format was asked for that there is no program for."""
    asked = wanted.guest_format
    for guest_format in (asked,) if asked else _PREFERRED:
        tool = shutil.which("mkswap" if guest_format == "swap" else f"mkfs.{guest_format}", path=_PATH)
        if tool is not None:
            return tool, guest_format
    # A guest can make its swap itself; a file system of a kind that was asked for is something else.
    if asked and not wanted.is_swap:
        raise GuestFailed(
            f"The host can't format a disk as {asked}.", details=f"mkfs.{asked} is missing (disk {wanted.name})"
        )
    return None


# Where such tools are, whatever the service's own search path is.
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
