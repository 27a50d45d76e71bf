"""Copies a disk as it is at one instant, while its guest runs.

QEMU does this with a backup job in push mode: it copies the disk, and before the guest overwrites a part that is not copied yet,
it copies that part first. The copy has everything in it, whatever images the disk stands on. A guest has one such job at a time.
A job whose caller died continues by itself, so whoever begins another one ends it first.
"""

from __future__ import annotations

import threading
import time
import xml.etree.ElementTree as ET
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import libvirt

from causeway.errors import GuestFailed
from causeway.virt.libvirt.connection import Connection
from causeway.virt.libvirt.guest_xml.domain_xml import target_of_file

# Seconds between two checks of a job, in case libvirt does not report its end.
_LOOK_EVERY = 5.0
# Seconds for QEMU to close a copy that is abandoned.
_ABORT_SECONDS = 30.0


def copy_while_it_runs(
    connection: Connection, uuid: str, disk: Path, copy: Path, timeout: float, still: AbstractContextManager[None]
) -> None:
    """Writes ``copy``, a new qcow2 file without a backing file. ``timeout``: seconds for all of it.

    ``still``: keeps the guest's file systems still at the instant whose disk is copied.

    Raises `GuestFailed`, also if the guest stops meanwhile or if somebody else makes a backup of it. No job of ours is left then.
    """
    what = f"copy {disk} beside its guest"
    _end_job(connection, uuid, copy.parent)
    with connection.events.job_ended(uuid) as ended:
        with still:
            connection.call(what, lambda hypervisor: _begin(hypervisor, uuid, disk, copy))
        try:
            if not _wait(connection, uuid, ended, timeout):
                raise GuestFailed(f"Copying {disk} beside its guest took longer than {timeout:.0f} s.")
        except GuestFailed:
            _end_job(connection, uuid, copy.parent)
            raise
    if not connection.call(what, lambda hypervisor: _has_succeeded(hypervisor, uuid)):
        raise GuestFailed(f"Copying {disk} beside its guest was broken off.", details=f"guest {uuid}")


def _wait(connection: Connection, uuid: str, ended: threading.Event, seconds: float) -> bool:
    """Waits until the guest has no backup job. False: it still has one after so many seconds."""
    end, what = time.monotonic() + seconds, f"describe the copy of guest {uuid}"
    while connection.call(what, lambda hypervisor: _target_of_job(hypervisor, uuid), again=True) is not None:
        left = end - time.monotonic()
        if left <= 0:
            return False
        ended.wait(min(left, _LOOK_EVERY))
    return True


def _end_job(connection: Connection, uuid: str, folder: Path) -> None:
    """Ends the guest's job if it writes into ``folder``. Raises `GuestFailed` if it writes elsewhere: then it is not ours."""

    def abort(hypervisor: Any) -> bool:
        target = _target_of_job(hypervisor, uuid)
        if target is None:
            return False
        if target.parent != folder:
            raise GuestFailed(
                f"Somebody else makes a backup of guest {uuid}. Try again when that is finished.", details=str(target)
            )
        hypervisor.lookupByUUIDString(uuid).abortJob()
        return True

    with connection.events.job_ended(uuid) as ended:
        if connection.call(f"end the copy of guest {uuid}", abort, again=True):
            _wait(connection, uuid, ended, _ABORT_SECONDS)


def _begin(hypervisor: Any, uuid: str, disk: Path, copy: Path) -> None:
    domain = hypervisor.lookupByUUIDString(uuid)
    name = target_of_file(domain.XMLDesc(), disk)
    if name is None:
        raise GuestFailed(f"Guest {uuid} has no disk {disk}.")
    backup = ET.Element("domainbackup", mode="push")
    disks = ET.SubElement(backup, "disks")
    wanted = ET.SubElement(disks, "disk", name=name, backup="yes", type="file")
    ET.SubElement(wanted, "driver", type="qcow2")
    ET.SubElement(wanted, "target", file=str(copy))
    domain.backupBegin(ET.tostring(backup, encoding="unicode"), None, 0)


def job_xml(hypervisor: Any, uuid: str) -> str | None:
    """libvirt's description of the guest's backup job; None: it has none."""
    try:
        found: str = hypervisor.lookupByUUIDString(uuid).backupGetXMLDesc()
    except libvirt.libvirtError as error:
        if error.get_error_code() in (libvirt.VIR_ERR_NO_DOMAIN_BACKUP, libvirt.VIR_ERR_OPERATION_INVALID):
            return None
        raise
    return found


def end_job(connection: Connection, uuid: str) -> None:
    """Ends the guest's backup job, whoever began it. Returns when it is over."""
    with connection.events.job_ended(uuid) as ended:
        connection.call(
            f"end the copy of guest {uuid}",
            lambda hypervisor: hypervisor.lookupByUUIDString(uuid).abortJob(),
        )
        _wait(connection, uuid, ended, _ABORT_SECONDS)


def _target_of_job(hypervisor: Any, uuid: str) -> Path | None:
    """The file that the guest's backup job writes; None: it has no job."""
    xml = job_xml(hypervisor, uuid)
    if xml is None:
        return None
    target = ET.fromstring(xml).find("./disks/disk/target")
    return Path("" if target is None else target.get("file", ""))


def _has_succeeded(hypervisor: Any, uuid: str) -> bool:
    domain = hypervisor.lookupByUUIDString(uuid)
    # libvirt answers this only when it has finished the job: then QEMU has closed the copy.
    domain.diskErrors()
    stats = domain.jobStats(libvirt.VIR_DOMAIN_JOB_STATS_COMPLETED)
    return bool(stats.get(libvirt.VIR_DOMAIN_JOB_SUCCESS))
