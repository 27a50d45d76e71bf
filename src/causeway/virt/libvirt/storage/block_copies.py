"""Swaps of volumes: QEMU copies one disk of a running guest to another, and the guest continues on that one
(`virt.driver.volume_jobs`).

QEMU mirrors the disk: it copies all of it, and from then on a write of the guest is complete when both disks have it (synchronous
writes). Until the switch the old disk has everything. The new disk has everything as soon as the copy is complete.

The definition of a living guest says which of them it uses. For a guest that is off, a file says whether the switch was begun:
libvirt may have died before it wrote the new definition, when the guest had already written to the new disk only.
"""

from __future__ import annotations

import logging
import os
import time
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import libvirt
import msgspec

from causeway import durable
from causeway.errors import GuestFailed
from causeway.virt.driver.volume_jobs import CopyProgress
from causeway.virt.libvirt import power
from causeway.virt.libvirt.connection import Connection
from causeway.virt.libvirt.guest_xml.domain_xml import GuestDisk, destination_xml, device_of_serial
from causeway.virt.libvirt.guest_xml.rbd_source import RbdSource, name_of
from causeway.virt.undo import undone_on_failure

LOG = logging.getLogger(__name__)

# Seconds between two checks of a copy.
_LOOK_EVERY = 0.5
# Seconds for QEMU to complete writes to the disks and to close one of them.
_SWITCH_SECONDS = 300.0
_FLAGS = (
    libvirt.VIR_DOMAIN_BLOCK_COPY_REUSE_EXT
    | libvirt.VIR_DOMAIN_BLOCK_COPY_TRANSIENT_JOB
    | libvirt.VIR_DOMAIN_BLOCK_COPY_SYNCHRONOUS_WRITES
)


@dataclass(frozen=True)
class Sizes:
    """The bytes of both volumes, as far as they are known: of those in Ceph. Nobody else may ask for them: libvirt waits for
    storage that does not answer, and nobody can reach the guest meanwhile.
    """

    old: int | None = None
    new: int | None = None


@dataclass
class _Switch:
    """Written before a switch. ``path``: the disk that the guest will use, as `name_of` says it."""

    path: str


@dataclass
class _Seen:
    """A disk of a guest. ``source``: what it is, and ``copy``: what it is being copied to, as `name_of` says it.

    ``ready``: the copy is complete, and stays so.
    """

    is_alive: bool
    target: str
    source: str
    copy: str | None = None
    ready: bool = False


class BlockCopies:
    """The copies of one host's guests. ``directory``: where switches are recorded."""

    def __init__(self, connection: Connection, directory: Path) -> None:
        self._connection = connection
        self._directory = directory

    def copy(self, uuid: str, serial: str, new: GuestDisk, progress: CopyProgress, sizes: Sizes) -> None:
        """Copies the volume; returns when the copy is complete. From then on every write goes to both volumes.

        If this raises, also because ``progress`` did, there is no copy any more. ``serial``: the id of the old volume.
        """
        with undone_on_failure() as undo:
            undo.callback(self._try_to_end, uuid, serial)
            self._connection.call(
                f"copy volume {serial}", lambda hypervisor: _begin(hypervisor, uuid, serial, new, sizes)
            )
            while True:
                seen = self._look(uuid, serial)
                if seen is None or not seen.is_alive or seen.copy != str(new.source):
                    raise GuestFailed(
                        f"Copying volume {serial} beside its guest was broken off.", details=f"guest {uuid}"
                    )
                progress(*self._done(uuid, seen.target))
                if seen.ready:
                    return
                time.sleep(_LOOK_EVERY)

    def switch(self, uuid: str, serial: str, new: GuestDisk) -> bool:
        """As `VolumeJobMethods.switch_volume`."""
        seen, wanted = self._look(uuid, serial), str(new.source)
        if seen is None or not seen.is_alive:
            return (seen is not None and seen.source == wanted) or self._was_begun(uuid, wanted)
        target = seen.target
        if seen.source == wanted:
            return True
        if seen.copy != wanted or not seen.ready:
            durable.delete(self._file(uuid))
            return False
        durable.write(self._file(uuid), msgspec.json.encode(_Switch(wanted)))
        try:
            self._connection.call(
                f"have guest {uuid} use the copy of volume {serial}",
                lambda hypervisor: hypervisor.lookupByUUIDString(uuid).blockJobAbort(
                    target, libvirt.VIR_DOMAIN_BLOCK_JOB_ABORT_PIVOT
                ),
                timeout=_SWITCH_SECONDS,
            )
        except GuestFailed as failure:
            seen = self._look(uuid, serial)
            if seen is None or not seen.is_alive or seen.source == wanted:
                return True
            if seen.copy is not None:
                raise
            LOG.warning("Guest %s keeps volume %s: %s %s", uuid, serial, failure.message, failure.details)
            durable.delete(self._file(uuid))
            return False
        return True

    def end(self, uuid: str, serial: str, kept: GuestDisk) -> None:
        """Ends a copy and deletes its record. Raises `GuestFailed` if a living guest uses another disk than ``kept``."""

        def end(hypervisor: Any) -> None:
            domain = power.find(hypervisor, uuid)
            if domain is None or not domain.isActive() or device_of_serial(domain.XMLDesc(), serial) is None:
                return
            seen = _seen(domain, serial)
            if seen.copy is not None:
                domain.blockJobAbort(seen.target, 0)
                seen = _seen(domain, serial)
            if seen.source != str(kept.source):
                raise GuestFailed(f"The guest of server {uuid} uses {seen.source}: it stays connected.")

        self._connection.call(f"end the copy of volume {serial}", end, timeout=_SWITCH_SECONDS)
        durable.delete(self._file(uuid))

    def _look(self, uuid: str, serial: str) -> _Seen | None:
        """None: there is no guest."""

        def look(hypervisor: Any) -> _Seen | None:
            domain = power.find(hypervisor, uuid)
            return None if domain is None else _seen(domain, serial)

        return self._connection.call(f"describe volume {serial} of guest {uuid}", look, again=True)

    def _done(self, uuid: str, target: str) -> tuple[int, int]:
        def ask(hypervisor: Any) -> dict[str, int]:
            found: dict[str, int] = hypervisor.lookupByUUIDString(uuid).blockJobInfo(target, 0)
            return found

        job = self._connection.call(f"describe the copy of {target} of guest {uuid}", ask, again=True)
        return job.get("cur", 0), job.get("end", 0)

    def _try_to_end(self, uuid: str, serial: str) -> None:
        """Ends a copy after another failure: its own failure is only logged."""

        def end(hypervisor: Any) -> None:
            domain = power.find(hypervisor, uuid)
            if domain is not None and domain.isActive() and _seen(domain, serial).copy is not None:
                domain.blockJobAbort(_seen(domain, serial).target, 0)

        try:
            self._connection.call(f"end the copy of volume {serial}", end, timeout=_SWITCH_SECONDS)
        except GuestFailed as failure:
            LOG.warning("A copy of volume %s of guest %s: %s %s", serial, uuid, failure.message, failure.details)

    def _was_begun(self, uuid: str, wanted: str) -> bool:
        try:
            found = durable.read(self._file(uuid), msgspec.json.Decoder(_Switch).decode)
        except durable.Torn:
            # The host died while this was written, which is before the switch.
            return False
        return found is not None and found.path == wanted

    def _file(self, uuid: str) -> Path:
        return switch_file(self._directory, uuid)


def switch_file(directory: Path, uuid: str) -> Path:
    return directory / f"switch-{uuid}.json"


def _begin(hypervisor: Any, uuid: str, serial: str, new: GuestDisk, sizes: Sizes) -> None:
    domain = power.find(hypervisor, uuid)
    if domain is None or not domain.isActive():
        raise GuestFailed(f"The guest of server {uuid} does not run: no volume of it can be swapped.")
    seen = _seen(domain, serial)
    if seen.copy == str(new.source):
        return
    if seen.copy is not None:
        raise GuestFailed(f"Somebody else copies volume {serial} of guest {uuid}.", details=seen.copy)
    size = domain.blockInfo(seen.target)[0] if sizes.old is None else sizes.old
    room = _size_of(new) if sizes.new is None else sizes.new
    if room is not None and room < size:
        raise GuestFailed(f"The new volume of guest {uuid} is too small: {room} bytes, not {size}.")
    # QEMU mirrors only to a disk of exactly the same size. The guest sees the rest of a larger volume after its next start.
    part = size if room is not None and room > size else None
    domain.blockCopy(seen.target, destination_xml(new, part=part), None, _FLAGS)


def _size_of(disk: GuestDisk) -> int | None:
    """The size of a raw disk in bytes; None: QEMU alone knows it."""
    if isinstance(disk.source, RbdSource) or disk.disk_format != "raw":
        return None
    with disk.path.open("rb") as file:
        return file.seek(0, os.SEEK_END)


def _seen(domain: Any, serial: str) -> _Seen:
    """The disk with this serial. Raises `GuestFailed` if the guest has none."""
    device = device_of_serial(domain.XMLDesc(), serial)
    if device is None:
        raise GuestFailed(f"Guest {domain.UUIDString()} has no volume {serial}.")
    disk = ET.fromstring(device)
    target = disk.find("target")
    mirror = disk.find("mirror")
    return _Seen(
        is_alive=bool(domain.isActive()),
        target=(target.get("dev") or "") if target is not None else "",
        source=name_of(disk) or "",
        copy=None if mirror is None else name_of(mirror),
        ready=mirror is not None and mirror.get("ready") == "yes",
    )
