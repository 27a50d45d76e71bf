"""Looks at what a host has of guests that Causeway did not make, and changes nothing: the connection can only read.

It needs no driver: one that starts makes the folders of guests its own.
"""

from __future__ import annotations

import logging
import re
import stat
from pathlib import Path
from typing import Any

import libvirt
import msgspec

from causeway.errors import GuestFailed
from causeway.model.found_host import FoundDisk, FoundFile, FoundFolder, FoundGuest, FoundHypervisor
from causeway.model.image import QCOW2, RAW
from causeway.virt.libvirt import power
from causeway.virt.libvirt.bounded import within
from causeway.virt.libvirt.guest_xml import found_guest
from causeway.virt.libvirt.guest_xml.found_guest import text
from causeway.virt.libvirt.storage import qemu_img
from causeway.virt.qcow2 import MAGIC

LOG = logging.getLogger(__name__)

# Seconds for a libvirtd or a file system that does not answer: for the guests of a host, and for their disks.
_SECONDS, _DISK_SECONDS = 120.0, 300.0
_FOLDER = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(_resize|_del)?")
_NOTES = msgspec.json.Decoder(dict[str, str])
_MOST_FILES, _MOST_NOTES = 100, 64 * 1024


def look(uri: str, instances_dir: Path, mount_base: Path, *, stores: tuple[str, ...] = (QCOW2,)) -> FoundHypervisor:
    """What the libvirtd at ``uri`` and these folders have. Raises `GuestFailed` if one of them does not answer."""
    found = FoundHypervisor(
        instances_path=str(instances_dir), mount_base=str(mount_base), mounts=mounts_below(mount_base), stores=[*stores]
    )
    found.hostname, found.guests = within(_SECONDS, "say which guests it has", lambda: _guests(uri))
    found.folders = within(_DISK_SECONDS, "list the folders of its guests", lambda: _folders(instances_dir))
    within(_DISK_SECONDS, "describe the disks of its guests", lambda: _describe_disks(found))
    return found


def _guests(uri: str) -> tuple[str, list[FoundGuest]]:
    try:
        connection = libvirt.openReadOnly(uri)
    except libvirt.libvirtError as failure:
        raise GuestFailed(f"The hypervisor at {uri} can't be reached.", details=str(failure)) from failure
    try:
        found = [guest for domain in connection.listAllDomains() if (guest := _guest(domain)) is not None]
        return text(connection.getHostname()) or "", sorted(found, key=lambda guest: guest.uuid)
    except libvirt.libvirtError as failure:
        raise GuestFailed("The hypervisor failed to list its guests.", details=str(failure)) from failure
    finally:
        connection.close()


def _guest(domain: Any) -> FoundGuest | None:
    """None: it was deleted meanwhile."""
    try:
        uuid, name, state = domain.UUIDString(), text(domain.name()) or "", power.power_state_of(domain)
        try:
            found = found_guest.read(domain.XMLDesc(), uuid=uuid, name=name, power_state=state)
        except ValueError as failure:
            return FoundGuest(uuid, name, state, lack=str(failure))
        found.is_persistent = bool(domain.isPersistent())
        found.starts_by_itself = found.is_persistent and bool(domain.autostart())
        found.has_saved_memory = found.is_persistent and bool(domain.hasManagedSaveImage())
        return found
    except libvirt.libvirtError as failure:
        if failure.get_error_code() == libvirt.VIR_ERR_NO_DOMAIN:
            return None
        raise


def _folders(directory: Path) -> list[FoundFolder]:
    if not directory.is_dir():
        return []
    named = sorted(path for path in directory.iterdir() if _FOLDER.fullmatch(path.name))
    return [_folder(path) for path in named if path.is_dir()]


def _folder(path: Path) -> FoundFolder:
    found = FoundFolder(path.name)
    try:
        for file in sorted(path.iterdir())[:_MOST_FILES]:
            status = file.lstat()
            if stat.S_ISREG(status.st_mode):
                found.files.append(FoundFile(text(file.name) or "", status.st_size, _format_of(file)))
        found.noted_formats = _noted(path / "disk.info")
    except FileNotFoundError:
        # Its server is being deleted.
        LOG.info("%s disappeared while it was looked at", path)
    return found


def _format_of(file: Path) -> str | None:
    """Of a disk, by the first bytes of its file. Only shown: nothing is opened with it."""
    if not file.name.startswith("disk") or file.name == "disk.info":
        return None
    with file.open("rb") as content:
        return QCOW2 if content.read(len(MAGIC)) == MAGIC else RAW


def _noted(file: Path) -> dict[str, str]:
    try:
        with file.open("rb") as content:
            noted = _NOTES.decode(content.read(_MOST_NOTES))
    except (FileNotFoundError, ValueError):
        return {}
    return {text(path) or "": text(each) or "" for path, each in noted.items()}


def _describe_disks(found: FoundHypervisor) -> None:
    for guest in found.guests:
        for disk in guest.disks:
            if disk.kind == "file" and disk.source and Path(disk.source).is_relative_to(found.instances_path):
                _describe(disk, Path(disk.source))


def _describe(disk: FoundDisk, path: Path) -> None:
    """Adds what the header of a local disk says. Nothing that it stands on is opened."""
    try:
        if disk.disk_format != QCOW2:
            disk.size = path.stat().st_size
            return
        header = qemu_img.info(path)
        disk.size = int(header["virtual-size"])
        disk.is_encrypted = disk.is_encrypted or bool(header.get("encrypted"))
        disk.base = text(header.get("full-backing-filename"))
        disk.is_base_there = disk.base is None or Path(disk.base).is_file()
    except (OSError, GuestFailed) as failure:
        disk.lack = text(f"{failure} {getattr(failure, 'details', '')}") or "unknown"


def mounts_below(folder: Path, table: Path = Path("/proc/self/mounts")) -> list[str]:
    """What is mounted below a folder."""
    found = set()
    for line in table.read_text(errors="replace").splitlines():
        words = line.split(" ")
        # Spaces and the like are written as octal numbers.
        place = re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), words[1]) if len(words) > 1 else ""
        if place and Path(place) != folder and Path(place).is_relative_to(folder):
            found.add(place)
    return sorted(found)
