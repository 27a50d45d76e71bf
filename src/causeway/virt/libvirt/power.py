"""Power states of guests and their transitions. A transition to the present state is a success.

A guest that is on its way to another host is not touched (see `presence`), except by `destroy_and_undefine`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import libvirt

from causeway.errors import GuestFailed
from causeway.model.states import PowerState
from causeway.virt.libvirt.connection import Connection
from causeway.virt.libvirt.presence import refuse_in_transit

# A guest that is booting ignores the power button, so it is pressed again after so many seconds.
_PRESS_AGAIN_SECONDS = 5.0

_POWER_STATES = {
    libvirt.VIR_DOMAIN_NOSTATE: PowerState.NOSTATE,
    libvirt.VIR_DOMAIN_RUNNING: PowerState.RUNNING,
    libvirt.VIR_DOMAIN_BLOCKED: PowerState.RUNNING,
    libvirt.VIR_DOMAIN_PAUSED: PowerState.PAUSED,
    # It is shutting down, and still runs.
    libvirt.VIR_DOMAIN_SHUTDOWN: PowerState.RUNNING,
    libvirt.VIR_DOMAIN_SHUTOFF: PowerState.SHUTDOWN,
    libvirt.VIR_DOMAIN_CRASHED: PowerState.CRASHED,
    # Its own system sleeps (S3). QEMU still has its memory, and its disks open: it may wake at any time.
    libvirt.VIR_DOMAIN_PMSUSPENDED: PowerState.RUNNING,
}
OFF = (PowerState.SHUTDOWN, PowerState.CRASHED, None)
_UNDEFINE = (
    libvirt.VIR_DOMAIN_UNDEFINE_MANAGED_SAVE
    | libvirt.VIR_DOMAIN_UNDEFINE_SNAPSHOTS_METADATA
    | libvirt.VIR_DOMAIN_UNDEFINE_CHECKPOINTS_METADATA
    # The state of firmware and TPM belongs to the guest's disks.
    | libvirt.VIR_DOMAIN_UNDEFINE_KEEP_NVRAM
    | libvirt.VIR_DOMAIN_UNDEFINE_KEEP_TPM
)


def name_of(connection: Any, uuid: str) -> str | None:
    """The name of the guest; None if there is none."""
    domain = find(connection, uuid)
    name: str | None = None if domain is None else domain.name()
    return name


def holder_of(connection: Any, name: str) -> str | None:
    """The uuid of the guest that has a name; None if none has. The only question by a name: whether it is free."""
    domain = _found(lambda: connection.lookupByName(name))
    uuid: str | None = None if domain is None else domain.UUIDString()
    return uuid


def find(connection: Any, uuid: str) -> Any:
    """The guest, or None."""
    return _found(lambda: connection.lookupByUUIDString(uuid))


def _found(look: Callable[[], Any]) -> Any:
    try:
        return look()
    except libvirt.libvirtError as error:
        if error.get_error_code() == libvirt.VIR_ERR_NO_DOMAIN:
            return None
        raise


def power_state_of(domain: Any) -> PowerState:
    return _POWER_STATES.get(domain.state()[0], PowerState.NOSTATE)


def state(connection: Connection, uuid: str) -> PowerState | None:
    """The power state of a guest; None: there is no such guest."""

    def ask(hypervisor: Any) -> PowerState | None:
        domain = find(hypervisor, uuid)
        return None if domain is None else power_state_of(domain)

    return connection.call(f"say how guest {uuid} is", ask, again=True)


def check_not_in_transit(connection: Connection, uuid: str) -> None:
    """Raises `GuestFailed` if the guest is on its way to or from another host: a start would make a second one."""

    def check(hypervisor: Any) -> None:
        if (domain := find(hypervisor, uuid)) is not None:
            refuse_in_transit(domain)

    connection.call(f"say whether guest {uuid} is on its way", check, again=True)


def check_off(connection: Connection, uuid: str, what: str) -> None:
    """Raises `GuestFailed` while a guest uses the disks of a server. ``what`` completes "can't be ..."."""
    if state(connection, uuid) not in OFF:
        raise GuestFailed(f"The disks of server {uuid} can't be {what} while its guest runs.")


def start_paused(connection: Connection, uuid: str, xml: str) -> None:
    """Defines the guest and starts it, so that its devices are there but it does not run yet."""

    def start(hypervisor: Any) -> None:
        # FORCE_BOOT: memory that libvirt saved earlier does not match the disks any more.
        flags = libvirt.VIR_DOMAIN_START_PAUSED | libvirt.VIR_DOMAIN_START_FORCE_BOOT
        hypervisor.defineXML(xml).createWithFlags(flags)

    connection.call(f"start guest {uuid}", start)


def define(connection: Connection, uuid: str, xml: str) -> None:
    connection.call(f"define guest {uuid}", lambda hypervisor: hypervisor.defineXML(xml), again=True)


def start_processors(connection: Connection, uuid: str) -> None:
    """A paused guest runs again; any other stays as it is. Raises `GuestFailed` for one that is on its way to another host."""

    def start_if_paused(hypervisor: Any) -> None:
        domain = hypervisor.lookupByUUIDString(uuid)
        refuse_in_transit(domain)
        if power_state_of(domain) == PowerState.PAUSED:
            domain.resume()

    connection.call(f"start the processors of guest {uuid}", start_if_paused, again=True)


def stop_processors(connection: Connection, uuid: str) -> None:
    """Pauses a guest. Raises `GuestFailed` if it is off, or on its way to another host."""

    def stop_if_running(hypervisor: Any) -> None:
        domain = hypervisor.lookupByUUIDString(uuid)
        refuse_in_transit(domain)
        if power_state_of(domain) != PowerState.PAUSED:
            domain.suspend()

    connection.call(f"pause guest {uuid}", stop_if_running, again=True)


def inject_nmi(connection: Connection, uuid: str) -> None:
    """Sends a non-maskable interrupt to the guest. A paused guest gets it when it is resumed."""

    def inject(hypervisor: Any) -> None:
        domain = hypervisor.lookupByUUIDString(uuid)
        refuse_in_transit(domain)
        domain.injectNMI()

    connection.call(f"interrupt guest {uuid}", inject)


def shut_down(connection: Connection, uuid: str, timeout: float) -> None:
    """Presses the guest's power button and waits until the guest is off. After ``timeout`` seconds cuts its power."""
    end = time.monotonic() + timeout
    with connection.events.stopped(uuid) as stopped:
        while (left := end - time.monotonic()) > 0:
            if state(connection, uuid) in OFF:
                return
            connection.call(f"shut guest {uuid} down", lambda hypervisor: _press(hypervisor, uuid), again=True)
            if stopped.wait(min(left, _PRESS_AGAIN_SECONDS)):
                return
    pull_plug(connection, uuid)


def pull_plug(connection: Connection, uuid: str) -> None:
    """Cuts the guest's power. Raises `GuestFailed` if it is on its way to another host."""

    def stop(hypervisor: Any) -> None:
        domain = find(hypervisor, uuid)
        if domain is not None:
            refuse_in_transit(domain)
            _ignoring_off(domain, domain.destroy)

    connection.call(f"stop guest {uuid}", stop, again=True)


def destroy_and_undefine(connection: Connection, uuid: str) -> None:
    """Cuts the guest's power and deletes its definition. Its disks stay."""

    def undefine(hypervisor: Any) -> None:
        domain = find(hypervisor, uuid)
        if domain is None:
            return
        if domain.isActive():
            _ignoring_off(domain, domain.destroy)
        if find(hypervisor, uuid) is not None:
            domain.undefineFlags(_UNDEFINE)

    connection.call(f"destroy guest {uuid}", undefine, again=True)


def _press(hypervisor: Any, uuid: str) -> None:
    domain = find(hypervisor, uuid)
    if domain is not None:
        refuse_in_transit(domain)
        _ignoring_off(domain, lambda: domain.shutdownFlags(libvirt.VIR_DOMAIN_SHUTDOWN_ACPI_POWER_BTN))


def _ignoring_off(domain: Any, action: Any) -> None:
    """Runs ``action`` on a guest. A guest that has stopped by itself meanwhile is no failure."""
    try:
        action()
    except libvirt.libvirtError as error:
        if error.get_error_code() not in (libvirt.VIR_ERR_OPERATION_INVALID, libvirt.VIR_ERR_NO_DOMAIN):
            raise
        if error.get_error_code() == libvirt.VIR_ERR_OPERATION_INVALID and domain.isActive():
            raise
