"""What libvirt shows of a guest that may be on its way to another host, and what must not be done to it then.

libvirt shows both a guest that its user paused and a guest that stands still to be handed over as "paused". The second may
already run on the other host, so **nothing here starts or resumes it**. Only what both hosts show decides which of them owns the
guest.
"""

from __future__ import annotations

from typing import Any

import libvirt

from causeway.errors import GuestFailed
from causeway.virt.live_guest import Presence

_HANDED_OVER = (
    libvirt.VIR_DOMAIN_PAUSED_MIGRATION,
    libvirt.VIR_DOMAIN_PAUSED_POSTCOPY,
    libvirt.VIR_DOMAIN_PAUSED_POSTCOPY_FAILED,
)
# It runs, and the rest of its memory still comes from the source.
_RUNNING_INCOMPLETE = (libvirt.VIR_DOMAIN_RUNNING_POSTCOPY, libvirt.VIR_DOMAIN_RUNNING_POSTCOPY_FAILED)
_ON = (
    libvirt.VIR_DOMAIN_RUNNING,
    libvirt.VIR_DOMAIN_BLOCKED,
    libvirt.VIR_DOMAIN_PMSUSPENDED,
    libvirt.VIR_DOMAIN_SHUTDOWN,
)


def of_domain(domain: Any) -> Presence:
    """What libvirt shows of a guest. This never asks QEMU, which may not answer while a migration hangs."""
    state, reason = domain.state()
    return presence_of(state, reason, defined=bool(domain.isPersistent()))


def presence_of(state: int, reason: int, *, defined: bool) -> Presence:
    """What a state and its reason, as libvirt has them, mean.

    ``defined``: the guest is persistent. A guest that starts here is defined before it starts; a guest that arrives by live
    migration is defined only after it has arrived.
    """
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
    """Whether the guest is off because it runs elsewhere. Shown for a moment after a migration, longer if libvirtd died then."""
    return bool(domain.state() == [libvirt.VIR_DOMAIN_SHUTOFF, libvirt.VIR_DOMAIN_SHUTOFF_MIGRATED])


def refuse_in_transit(domain: Any) -> None:
    """Raises `GuestFailed` for a guest that is arriving, or that was handed over and may run elsewhere."""
    shown = of_domain(domain)
    if shown in (Presence.INCOMING, Presence.PAUSED_FOR_MIGRATION) or was_handed_over(domain):
        raise GuestFailed(
            f"The guest of server {domain.UUIDString()} is on its way to another host; nothing can be done with it here.",
            details=f"the hypervisor shows it {shown}",
        )
