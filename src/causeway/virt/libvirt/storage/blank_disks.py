"""Ephemeral disks and swap of guests: qcow2 files beside the root disk, formatted when they are made.

Formats and labels are Nova's ([DEFAULT] default_ephemeral_format, ``guest_format`` of block device mappings).
"""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

from causeway import durable
from causeway.errors import DiskTransferFailed, GuestFailed
from causeway.virt.driver import LocalDisk
from causeway.virt.libvirt.commands import run
from causeway.virt.libvirt.storage import qemu_img
from causeway.virt.libvirt.storage.received_disks import take

LOG = logging.getLogger(__name__)

_MIB = 2**20
# If nobody asked for a format: the first of these that this host has the tool for.
_PREFERRED = ("ext4", "vfat")


def create(disk: Path, wanted: LocalDisk, timeout: float) -> None:
    """Makes the disk, or changes the one that exists, as `LocalDisk` says. May be repeated. ``timeout``: seconds.

    Raises `GuestFailed` if this host can't make the format, `DiskTransferFailed` if the content was not received, and
    `ImageRefused` if it is not what hosts send, or too large.
    """
    partial, received = disk.with_name(f"{disk.name}.partial"), disk.with_name(f"{disk.name}.received")
    if wanted.snapshot is not None and wanted.snapshot.exists():
        take(wanted.snapshot, wanted.snapshot_format, received, timeout, most=wanted.size_mb * _MIB)
    if received.exists():
        qemu_img.settle_foreign(received, None, wanted.size_mb * _MIB)
        durable.settle(received, disk)
    elif wanted.snapshot is not None and not disk.exists():
        raise DiskTransferFailed(f"Disk {wanted.name} of the server was not received.", details=str(wanted.snapshot))
    elif disk.exists() and not _is_other_swap(disk, wanted):
        qemu_img.grow(disk, wanted.size_mb * _MIB)
        # The folder too: perhaps a process was killed right after it had given the disk its name.
        durable.sync(disk)
        durable.sync(disk.parent)
    else:
        _make(partial, wanted)
        durable.settle(partial, disk)


def _is_other_swap(disk: Path, wanted: LocalDisk) -> bool:
    return wanted.is_swap and qemu_img.virtual_size(disk) != wanted.size_mb * _MIB


def _make(path: Path, wanted: LocalDisk) -> None:
    """Makes a new disk. It is formatted as a sparse raw file of its full size, and becomes a small qcow2 file."""
    raw = path.with_name(f"{path.name}.raw")
    raw.unlink(missing_ok=True)
    # Bug 2152581: always a new file, never one that exists under this name.
    with raw.open("xb") as file:
        file.truncate(wanted.size_mb * _MIB)
    try:
        _format(raw, wanted)
        qemu_img.from_raw(raw, path)
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
    """(program, format); None: there is no program.

    Raises `GuestFailed` if a file system was asked for that this host can't make.
    """
    asked = wanted.guest_format
    for guest_format in (asked,) if asked else _PREFERRED:
        tool = shutil.which("mkswap" if guest_format == "swap" else f"mkfs.{guest_format}", path=_PATH)
        if tool is not None:
            return tool, guest_format
    # A guest can make swap itself, so that may stay blank. It may not be able to make the file system that was asked for.
    if asked and not wanted.is_swap:
        raise GuestFailed(
            f"The host can't format a disk as {asked}.", details=f"mkfs.{asked} is missing (disk {wanted.name})"
        )
    return None


# Where these programs are, even if the service has another search path.
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
