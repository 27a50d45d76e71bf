"""A guest's memory in a file beside its disks: saved at one host, woken there or at another.

::

    INSTANCES/UUID/memory            the complete memory
    INSTANCES/UUID/memory.partial    while libvirt writes it
    INSTANCES/UUID/memory.received   what another host sent, while its head is replaced (`save_image`)
    INSTANCES/UUID/memory.used       the guest that was woken from it may run

A suspended guest is one that was saved and not woken. Memory must match the disks: the file loses its name before the guest runs,
and is deleted before any start that does not use it. libvirt shows a woken guest in the same way as one that is handed over: only
the file shows that it may be resumed here.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import libvirt

from causeway import durable
from causeway.errors import GuestFailed
from causeway.model.states import PowerState
from causeway.virt.driver import MEMORY
from causeway.virt.libvirt import power, presence
from causeway.virt.libvirt.connection import Connection
from causeway.virt.libvirt.guest_xml.migratable_xml import cookie_for_target, for_target
from causeway.virt.libvirt.storage import save_image
from causeway.virt.libvirt.storage.folders import InstanceFolders


def save(connection: Connection, disks: InstanceFolders, uuid: str) -> None:
    """Saves the guest's memory; returns when the guest is off and the file is complete. May be repeated.

    Raises `GuestFailed` if the guest does not run and was not saved.
    """
    partial = _partial(disks, uuid)

    def write(hypervisor: Any) -> bool:
        domain = power.find(hypervisor, uuid)
        if domain is not None and domain.isActive():
            presence.refuse_in_transit(domain)
            try:
                domain.saveFlags(str(partial), None, 0)
            except libvirt.libvirtError:
                # An earlier caller died or stopped waiting; libvirt has saved the guest for it meanwhile.
                if domain.isActive():
                    raise
        return partial.exists() and _is_whole(hypervisor, partial)

    is_off = power.state(connection, uuid) in power.OFF
    if is_off and (find(disks, uuid) or find(disks, uuid, stashed=True)):
        return
    if connection.call_aside(f"save guest {uuid}", write, timeout=disks.timeout):
        with suppress(FileNotFoundError):
            durable.settle(partial, disks.folder(uuid) / MEMORY)
    # Another call may have saved it at the same time.
    if find(disks, uuid) is None:
        raise GuestFailed(f"The guest of server {uuid} does not run: it has no memory to save.")


def find(disks: InstanceFolders, uuid: str, *, stashed: bool = False) -> Path | None:
    """The file with the guest's memory, complete; None: there is none."""
    path = (disks.stashed_folder(uuid) if stashed else disks.folder(uuid)) / MEMORY
    return path if path.exists() else None


def take(disks: InstanceFolders, uuid: str, received: Path, wanted: str) -> None:
    """Puts the file ``received`` from another host in its place. ``wanted``: the XML with which this host would define the guest.

    Nothing of the other host's definition is in the file then, but for values that `for_target` accepts. Raises `GuestRefused`.
    """
    path = _received(disks, uuid)
    if received.stat().st_nlink == 1:
        shutil.move(received, path)
    else:
        # The other name is somebody else's, and what the file says changes now.
        shutil.copyfile(received, path)
        received.unlink()
    # The name that the guest had may be another guest's here.
    save_image.adopt(path, lambda foreign: for_target(foreign, wanted, keeps_name=False), cookie_for_target)
    durable.settle(path, disks.folder(uuid) / MEMORY)


def resume_woken(connection: Connection, disks: InstanceFolders, uuid: str, *, is_paused: bool) -> None:
    """Lets a woken guest run. May be repeated. Raises `GuestFailed` for any other guest.

    ``is_paused``: its user had paused it, so it stays paused, and libvirt shows it as paused by its user.
    """
    memory = disks.folder(uuid) / MEMORY
    used = _used(disks, uuid)
    if power.state(connection, uuid) in power.OFF:
        raise GuestFailed(f"The guest of server {uuid} is off: it can't be resumed.")
    if memory.exists():
        durable.rename(memory, used)

    def resume(hypervisor: Any) -> None:
        domain = hypervisor.lookupByUUIDString(uuid)
        if not used.exists():
            presence.refuse_in_transit(domain)
        if power.power_state_of(domain) is PowerState.PAUSED:
            domain.resume()
        if is_paused:
            # Resumed and paused again, it is no longer shown as one that is handed over.
            domain.suspend()

    connection.call(f"resume guest {uuid}", resume, again=True)
    durable.delete(used)


def discard(disks: InstanceFolders, uuid: str) -> None:
    """Deletes saved memory of the guest, if there is any. Called before a boot."""
    for path in (disks.folder(uuid) / MEMORY, _partial(disks, uuid), _received(disks, uuid), _used(disks, uuid)):
        if path.exists():
            durable.delete(path)


def is_awake(connection: Connection, disks: InstanceFolders, uuid: str) -> bool:
    """Whether the guest was woken completely and stands still: `wake` defines it last."""

    def look(hypervisor: Any) -> bool:
        domain = power.find(hypervisor, uuid)
        return domain is not None and bool(domain.isPersistent()) and power.power_state_of(domain) is PowerState.PAUSED

    return find(disks, uuid) is not None and connection.call(f"say whether guest {uuid} is awake", look, again=True)


def is_woken(connection: Connection, disks: InstanceFolders, uuid: str) -> bool:
    """Whether the guest stands still because it was woken, also if it was being resumed when a process died."""
    stands_still = power.state(connection, uuid) is PowerState.PAUSED
    return stands_still and (find(disks, uuid) is not None or _used(disks, uuid).exists())


def describe(hypervisor: Any, disks: InstanceFolders, uuid: str) -> str | None:
    """The XML of the saved guest, as it was when it ran; None: there is no saved memory."""
    memory = find(disks, uuid)
    if memory is None:
        return None
    xml: str = hypervisor.saveImageGetXMLDesc(str(memory), libvirt.VIR_DOMAIN_SAVE_IMAGE_XML_SECURE)
    return xml


def wake(connection: Connection, disks: InstanceFolders, uuid: str, wanted: str) -> None:
    """Makes the guest from its saved memory; it stands still. ``wanted``: the XML with which this host would define it."""
    memory = disks.folder(uuid) / MEMORY

    def restore(hypervisor: Any) -> None:
        xml = for_target(describe(hypervisor, disks, uuid) or wanted, wanted)
        hypervisor.restoreFlags(str(memory), xml, libvirt.VIR_DOMAIN_SAVE_PAUSED)
        hypervisor.defineXML(xml)

    connection.call_aside(f"wake guest {uuid}", restore, timeout=disks.timeout)


def _partial(disks: InstanceFolders, uuid: str) -> Path:
    return disks.folder(uuid) / f"{MEMORY}.partial"


def _received(disks: InstanceFolders, uuid: str) -> Path:
    return disks.folder(uuid) / f"{MEMORY}.received"


def _used(disks: InstanceFolders, uuid: str) -> Path:
    return disks.folder(uuid) / f"{MEMORY}.used"


def _is_whole(hypervisor: Any, path: Path) -> bool:
    """Whether a file of saved memory is complete: libvirt marks one that it has not finished."""
    try:
        hypervisor.saveImageGetXMLDesc(str(path), 0)
    except libvirt.libvirtError as error:
        if error.get_error_code() in (libvirt.VIR_ERR_OPERATION_FAILED, libvirt.VIR_ERR_OPERATION_INVALID):
            return False
        raise
    return True
