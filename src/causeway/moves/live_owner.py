"""Decides which host owns a guest after a live migration ended or its order was lost, only from what both hypervisors show.

An error of the caller that ordered the migration proves nothing, since the hypervisors may have continued. The rules come from
experiments with real hypervisors. A guest that is alive at the target belongs to the target, whatever the source shows. A guest
that stands still at the source to be handed over must not be resumed. While one side can't be asked, only a certain answer of
the other one counts.
"""

from __future__ import annotations

from enum import StrEnum

from causeway.virt.live_guest import Presence

# The source's hypervisor has no guest that could run.
_GONE = (Presence.ABSENT, Presence.OFF, Presence.CRASHED)
# The target has something that may still become a guest.
_COMING = (Presence.INCOMING, Presence.PAUSED_FOR_MIGRATION)


class Decision(StrEnum):
    #: the target owns it: go forward
    ARRIVED = "arrived"
    #: the target owns it, and the source still sends memory: go forward when that has ended
    LANDING = "landing"
    #: the migration is still running: wait for it, or abort it
    UNDER_WAY = "under way"
    #: the source owns it: what the target has may be deleted
    STAYED = "stayed"
    #: neither has a running guest, and the source owned it: what the target has may be deleted
    STOPPED = "stopped"
    #: neither hypervisor has it
    LOST = "lost"
    #: unknown now: nothing may be resumed, started or destroyed
    UNCLEAR = "unclear"


def owner(source: Presence | None, target: Presence | None, *, has_job: bool) -> Decision:
    """``source``, ``target``: what they show; None if they can't be asked. ``has_job``: the source has a running migration."""
    if target is not None and target.is_alive:
        return Decision.LANDING if has_job else Decision.ARRIVED
    if source is None:
        return Decision.UNCLEAR
    if has_job:
        return Decision.UNDER_WAY
    if target is None:
        # A guest that runs was not handed over. A paused one was paused by a user, or it arrived and is still shown here.
        return Decision.STAYED if source is Presence.RUNNING else Decision.UNCLEAR
    if source.is_alive:
        return Decision.STAYED
    if source is Presence.CRASHED:
        return Decision.STOPPED
    if source in _GONE and target not in _COMING:
        is_known = source is Presence.OFF or target is not Presence.ABSENT
        return Decision.STOPPED if is_known else Decision.LOST
    return Decision.UNCLEAR
