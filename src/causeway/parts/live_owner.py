"""Who owns a guest whose live migration ended, or was lost sight of: decided from what both hypervisors show, and nothing else.

An error of whoever ordered the migration is no proof: the hypervisors may have continued without them. The rules, from tries with
real hypervisors: a guest that is alive at the target is the target's, whatever the source shows; one that stands still at the
source to be handed over is nobody's to resume; and while one side can't be asked, only what the other one says for sure counts.
"""

from __future__ import annotations

from enum import StrEnum

from causeway.virt.live import Presence

# The source's hypervisor has no guest that could run.
_GONE = (Presence.ABSENT, Presence.OFF, Presence.CRASHED)
# The target has something that may still become a guest.
_COMING = (Presence.INCOMING, Presence.PAUSED_FOR_MIGRATION)


class Decision(StrEnum):
    #: the target owns it: only forward
    ARRIVED = "arrived"
    #: the target owns it, and the source still gives it memory: only forward, when that has ended
    LANDING = "landing"
    #: it is still running: to be waited for, or aborted
    UNDER_WAY = "under way"
    #: the source owns it, and what the target has may go
    STAYED = "stayed"
    #: neither has a guest that runs, and it was the source's: what the target has may go
    STOPPED = "stopped"
    #: neither hypervisor knows it
    LOST = "lost"
    #: nobody can say now: nothing is resumed, started or destroyed
    UNCLEAR = "unclear"


def owner(source: Presence | None, target: Presence | None, *, has_job: bool) -> Decision:
    """``source``, ``target``: what they show, None if they can't be asked. ``has_job``: a migration is running at the source."""
    if target is not None and target.is_alive:
        return Decision.LANDING if has_job else Decision.ARRIVED
    if source is None:
        return Decision.UNCLEAR
    if has_job:
        return Decision.UNDER_WAY
    if target is None:
        # One that runs was not handed over. A user may have paused it, or it arrived and its pause was kept here.
        return Decision.STAYED if source is Presence.RUNNING else Decision.UNCLEAR
    if source.is_alive:
        return Decision.STAYED
    if source is Presence.CRASHED:
        return Decision.STOPPED
    if source in _GONE and target not in _COMING:
        is_known = source is Presence.OFF or target is not Presence.ABSENT
        return Decision.STOPPED if is_known else Decision.LOST
    return Decision.UNCLEAR
