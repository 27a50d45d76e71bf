"""Finds limits that no administrator has set: how many moves a resource carries at once. Tries, and measures the bytes sent.

The throughput of a resource since its limit was raised is compared with the throughput before. If it grew by a good part of
what the raise could bring, the limit is raised again, by a half. If it did not, the last raise is undone, and tried again after
a rest. If it breaks down, the limit falls by a quarter. A resource that is not used up to its limit keeps it.

The running moves share the bytes a second that a drain may use (`rates_of` in the store of drains gives each host its part). This
module finds how many moves should share them: the smallest number that uses nine tenths, so that each move ends soon.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from causeway.drains.pace import ALL, BYTES, UNDER_WAY, Load, Room, resources_of
from causeway.model.drains import FIRST_LIMITS, Climb, DrainServer, Limits, Pacing

# A raise pays if the rate grows by at least this part of what is possible; a rate has broken down if it falls to this part.
_WORTH, _BREAKS = 0.25, 0.5
# Seconds that a resource must be used up to its limit before a decision, and decisions until a raise is tried again.
_DECIDED_AFTER, _REST = 45.0, 8
# The part of a drain's bytes a second that should be used.
_USED = 0.9
_MOST = {"total": 400, "per_source_host": 16, "per_target_host": 16, "per_cell_pair": 200}
_MIB = 1 << 20


def room_of(limits: Limits, pacing: Pacing, assumed_rate: float) -> Room:
    """Returns how many moves each resource takes now.

    ``assumed_rate``: MiB a second that a host is expected to send, before it was measured.
    """
    found = {name: climb.limit for name, climb in pacing.climbs.items()}
    if limits.bytes_per_second is not None:
        found.setdefault(BYTES, _first_of_bytes(limits.bytes_per_second, assumed_rate))
    return Room(limits, found)


def measured(
    pacing: Pacing, limits: Limits, servers: Iterable[DrainServer], sent: Mapping[str, int], now: float, assumed: float
) -> Pacing:
    """Returns the limits and measurements at the end of a period. ``now``: seconds since the epoch.

    ``sent``: server -> bytes that its move has sent so far, of servers that moved in the period. Bytes that a repeated step
    sends again count once.
    """
    seconds = now - pacing.at
    through: Counter[str] = Counter()
    load = Load()
    high: dict[str, int] = {}
    for server in servers:
        request_id = server.request_id
        if request_id is None or server.instance_uuid not in sent:
            continue
        load.add(server)
        before = pacing.sent.get(request_id, 0)
        most = max(before, sent[server.instance_uuid])
        for resource in resources_of(server):
            through[str(resource)] += most - before
        if server.state in UNDER_WAY:
            high[request_id] = most
    if not pacing.at or seconds <= 0:
        return replace(pacing, at=now, sent=high)
    climbs = dict(pacing.climbs)
    for resource in load.count:
        name = str(resource)
        if getattr(limits, resource.kind) is None:
            climb = climbs.get(name) or Climb(FIRST_LIMITS[resource.kind])
            is_full = load.count[resource] >= climb.limit
            climbs[name] = after(climb, through[name], seconds, is_full=is_full, most=_MOST[resource.kind])
    if limits.bytes_per_second is not None:
        climb = climbs.get(BYTES) or Climb(_first_of_bytes(limits.bytes_per_second, assumed))
        rate = through[str(ALL)] / seconds
        if rate < _USED * limits.bytes_per_second and load.count[ALL] >= climb.limit:
            climb = replace(climb, limit=min(climb.limit + 1, _MOST["total"]))
        climbs[BYTES] = replace(climb, rate=rate)
    else:
        climbs.pop(BYTES, None)
    return Pacing(at=now, rate=through[str(ALL)] / seconds, sent=high, climbs=climbs)


def after(climb: Climb, size: int, seconds: float, *, is_full: bool, most: int) -> Climb:
    """Returns a resource's limit after a period of ``seconds`` in which it carried ``size`` bytes."""
    if not is_full:
        return replace(climb, bytes=0, seconds=0.0)
    climb = replace(climb, bytes=climb.bytes + size, seconds=climb.seconds + seconds)
    if climb.seconds < _DECIDED_AFTER or not climb.bytes:
        return climb
    rate = climb.bytes / climb.seconds
    if rate < _BREAKS * climb.rate:
        return Climb(max(1, climb.limit * 3 // 4), rate, rest=_REST)
    if climb.raised_from is not None:
        wanted = 1 + _WORTH * (climb.limit / climb.raised_from - 1)
        if rate < wanted * climb.rate:
            return Climb(climb.raised_from, climb.rate, rest=_REST)
    elif climb.rest:
        return replace(climb, rest=climb.rest - 1, bytes=0, seconds=0.0)
    if climb.limit >= most:
        return Climb(climb.limit, rate, rest=_REST)
    return Climb(min(most, climb.limit + max(1, climb.limit // 2)), rate, raised_from=climb.limit)


def _first_of_bytes(limit: int, assumed_rate: float) -> int:
    """Returns how many moves would use all of ``limit`` if each sent at ``assumed_rate``."""
    return max(1, round(limit / (assumed_rate * _MIB)))
