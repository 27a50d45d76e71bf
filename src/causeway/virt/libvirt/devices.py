"""Attaches devices to existing guests and detaches them, also while they run."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree as ET

import libvirt

from causeway.errors import GuestFailed
from causeway.virt.libvirt import power
from causeway.virt.libvirt.connection import Connection
from causeway.virt.libvirt.guest_xml.domain_xml import device_of_serial

# Seconds. A guest that is booting misses the request to release a device, so it is asked again.
_ASK_AGAIN_SECONDS = 5.0

# Given a guest's XML, returns the XML of a device in it; None: the guest does not have it.
Finder = Callable[[str], str | None]


def guests_with(connection: Connection, find_device: Finder) -> set[str]:
    """The uuids of guests that have the device, now or from their next start on."""

    def look(hypervisor: Any) -> set[str]:
        found = set()
        for domain in hypervisor.listAllDomains():
            try:
                if find_device(domain.XMLDesc()) or find_device(domain.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE)):
                    found.add(domain.UUIDString())
            except libvirt.libvirtError as error:
                # The guest was destroyed meanwhile.
                if error.get_error_code() != libvirt.VIR_ERR_NO_DOMAIN:
                    raise
        return found

    return connection.call("find which guests have a device", look, again=True)


def asked(connection: Connection, uuid: str, look: Finder) -> str | None:
    """What ``look`` finds in the guest's definition; None: it finds nothing, or there is no guest."""

    def ask(hypervisor: Any) -> str | None:
        domain = power.find(hypervisor, uuid)
        return None if domain is None else look(domain.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE))

    return connection.call(f"describe guest {uuid}", ask, again=True)


def attach(connection: Connection, uuid: str, device: str, find_device: Finder) -> None:
    """Attaches the device to the guest, now if it runs and for its next start. No guest, or already attached: nothing happens."""

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


def resize(connection: Connection, uuid: str, serial: str, size: int) -> None:
    """A running guest sees that its volume (``serial``) has ``size`` bytes. It has no such volume: nothing happens."""

    def show(hypervisor: Any) -> None:
        domain = power.find(hypervisor, uuid)
        found = None if domain is None or not domain.isActive() else device_of_serial(domain.XMLDesc(), serial)
        target = None if found is None else ET.fromstring(found).find("target")
        if target is not None:
            domain.blockResize(target.get("dev"), size, libvirt.VIR_DOMAIN_BLOCK_RESIZE_BYTES)

    connection.call(f"resize volume {serial} of guest {uuid}", show, again=True)


def detach(connection: Connection, uuid: str, find_device: Finder, *, what: str, timeout: float) -> None:
    """Detaches the device and waits until the guest has released it. ``what`` names the device in messages.

    Raises `GuestFailed` if the guest does not release it within ``timeout`` seconds.
    """
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
    """Asks a running guest to release the device. False: it does not have it any more."""
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
        # It is being released, or was released: the next look shows it.
        if error.get_error_code() not in (libvirt.VIR_ERR_OPERATION_FAILED, libvirt.VIR_ERR_DEVICE_MISSING):
            raise
    return True
