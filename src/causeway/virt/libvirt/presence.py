"""What libvirt shows of a guest that may be on its way to another host, and what must not be done to it then.

libvirt says "paused" of a guest that its user paused and of one that stands still to be handed over. The second may run already
where it was handed to: **nothing here starts or resumes it**. What both hosts show decides who owns it, and nothing else.
"""

from __future__ import annotations

from typing import Any

import libvirt

from causeway.errors import GuestFailed
from causeway.virt.live import Presence

_HANDED_OVER = (
    libvirt.VIR_DOMAIN_PAUSED_MIGRATION,
    libvirt.VIR_DOMAIN_PAUSED_POSTCOPY,
    libvirt.VIR_DOMAIN_PAUSED_POSTCOPY_FAILED,
)
# It runs, and gets what it has not of its memory from the source.
_RUNNING_INCOMPLETE = (libvirt.VIR_DOMAIN_RUNNING_POSTCOPY, libvirt.VIR_DOMAIN_RUNNING_POSTCOPY_FAILED)
_ON = (
    libvirt.VIR_DOMAIN_RUNNING,
    libvirt.VIR_DOMAIN_BLOCKED,
    libvirt.VIR_DOMAIN_PMSUSPENDED,
    libvirt.VIR_DOMAIN_SHUTDOWN,
)


def of_domain(domain: Any) -> Presence:
    """Never asks QEMU, which may not answer while a migration is stuck."""
    state, reason = domain.state()
    return presence_of(state, reason, defined=bool(domain.isPersistent()))


def presence_of(state: int, reason: int, *, defined: bool) -> Presence:
    """``defined``: guests that live here are defined before they start; one that comes in is defined when it has come."""
    if state in _ON:
        incomplete = state == libvirt.VIR_DOMAIN_RUNNING and reason in _RUNNING_INCOMPLETE
        return Presence.INCOMING if incomplete else Presence.RUNNING
    if state == libvirt.VIR_DOMAIN_PAUSED:
        if reason in _HANDED_OVER:
            return Presence.PAUSED_FOR_MIGRATION if defined else Presence.INCOMING
        starts = reason == libvirt.VIR_DOMAIN_PAUSED_STARTING_UP
        return Presence.INCOMING if starts and not defined else Presence.PAUSED
    crashed = (state, reason) == (libvirt.VIR_DOMAIN_SHUTOFF, libvirt.VIR_DOMAIN_SHUTOFF_CRASHED)
    return Presence.CRASHED if crashed or state == libvirt.VIR_DOMAIN_CRASHED else Presence.OFF


def was_handed_over(domain: Any) -> bool:
    """Off because it runs elsewhere: shown for a moment at the end of a migration, or longer if libvirtd died then."""
    return bool(domain.state() == [libvirt.VIR_DOMAIN_SHUTOFF, libvirt.VIR_DOMAIN_SHUTOFF_MIGRATED])


def refuse_in_transit(domain: Any) -> None:
    """Raises `GuestFailed` for a guest that comes, or was handed over and may run elsewhere."""
    shown = of_domain(domain)
    if shown in (Presence.INCOMING, Presence.PAUSED_FOR_MIGRATION) or was_handed_over(domain):
        raise GuestFailed(
            f"The guest of server {domain.UUIDString()} is on its way to another host; nothing can be done with it here.",
            details=f"the hypervisor shows it {shown}",
        )
