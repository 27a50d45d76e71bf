"""Devices of a guest that is there: given and taken, also while it runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import libvirt

from causeway.errors import GuestFailed
from causeway.virt.libvirt import power
from causeway.virt.libvirt.connection import Connection

# A guest that is booting does not hear that it should release a device: it is asked again.
_ASK_AGAIN_SECONDS = 5.0

# The XML of a device within a guest's XML, if it has it.
Finder = Callable[[str], str | None]


def guests_with(connection: Connection, find_device: Finder) -> set[str]:
    """The guests that have the device, now or from their next start on."""

    def look(hypervisor: Any) -> set[str]:
        found = set()
        for domain in hypervisor.listAllDomains():
            try:
                if find_device(domain.XMLDesc()) or find_device(domain.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE)):
                    found.add(domain.UUIDString())
            except libvirt.libvirtError as error:
                # It went while we looked.
                if error.get_error_code() != libvirt.VIR_ERR_NO_DOMAIN:
                    raise
        return found

    return connection.call("find which guests have a device", look, again=True)


def asked(connection: Connection, uuid: str, look: Finder) -> str | None:
    """What the guest's definition says; None if there is no guest."""

    def ask(hypervisor: Any) -> str | None:
        domain = power.find(hypervisor, uuid)
        return None if domain is None else look(domain.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE))

    return connection.call(f"describe guest {uuid}", ask, again=True)


def attach(connection: Connection, uuid: str, device: str, find_device: Finder) -> None:
    """Gives the device to the guest (now if it runs, and for its next start). No guest, or it has it: nothing to do."""

    def give(hypervisor: Any) -> None:
        domain = power.find(hypervisor, uuid)
        if domain is None:
            return
        flags = 0
        if find_device(domain.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE)) is None:
            flags |= libvirt.VIR_DOMAIN_AFFECT_CONFIG
        if domain.isActive() and find_device(domain.XMLDesc()) is None:
            flags |= libvirt.VIR_DOMAIN_AFFECT_LIVE
        if flags:
            domain.attachDeviceFlags(device, flags)

    connection.call(f"attach a device to guest {uuid}", give, again=True)


def detach(connection: Connection, uuid: str, find_device: Finder, *, what: str, timeout: float) -> None:
    """Detaches a device from the guest and waits until it is released. Raises `GuestFailed` if it does not in ``timeout`` s."""
    end = time.monotonic() + timeout
    with connection.events.device_answered(uuid) as answered:
        while True:
            answered.clear()
            asked = connection.call(
                f"detach {what} from guest {uuid}", lambda hypervisor: _take(hypervisor, uuid, find_device), again=True
            )
            if not asked:
                return
            left = end - time.monotonic()
            if left <= 0:
                raise GuestFailed(
                    f"The guest of server {uuid} did not release {what} within {timeout:.0f} s; stop the server first."
                )
            answered.wait(min(left, _ASK_AGAIN_SECONDS))


def _take(hypervisor: Any, uuid: str, find_device: Finder) -> bool:
    """Whether the running guest still had the device, and was asked to release it."""
    domain = power.find(hypervisor, uuid)
    if domain is None:
        return False
    if device := find_device(domain.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE)):
        domain.detachDeviceFlags(device, libvirt.VIR_DOMAIN_AFFECT_CONFIG)
    device = find_device(domain.XMLDesc()) if domain.isActive() else None
    if not device:
        return False
    try:
        domain.detachDeviceFlags(device, libvirt.VIR_DOMAIN_AFFECT_LIVE)
    except libvirt.libvirtError as error:
        # It is on its way out, or out: the next look shows it.
        if error.get_error_code() not in (libvirt.VIR_ERR_OPERATION_FAILED, libvirt.VIR_ERR_DEVICE_MISSING):
            raise
    return True
