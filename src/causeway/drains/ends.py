"""Estimates when a running drain ends, from what it has done so far. Computed for each answer: no row is read beside the counts.

A plan knows its end from `schedule`. A running drain has a rate of its own: servers that arrived per second in which its windows
were open. Servers on hold are apart: they go when their owners allow it.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import takewhile

from causeway.drains.windows import openings
from causeway.model.drains import (
    ARRIVED,
    Afterwards,
    Delay,
    Drain,
    DrainProgress,
    DrainServerState,
    DrainState,
    Window,
)


def estimate(drain: Drain, progress: DrainProgress, now: datetime) -> None:
    """Sets the end in ``progress``. It stays unknown while the drain does not run, or if a server can't go."""
    ends_at, delay = _end(drain, progress, now)
    if ends_at is None:
        return
    progress.ends_at, progress.delayed_by = ends_at.replace(microsecond=0), delay
    if drain.request.deadline is not None:
        progress.meets_deadline = ends_at <= _utc(drain.request.deadline)


def _end(drain: Drain, progress: DrainProgress, now: datetime) -> tuple[datetime | None, Delay | None]:
    request, counts = drain.request, progress.servers
    moved = counts.get(DrainServerState.MOVED, 0)
    if drain.state is not DrainState.RUNNING or drain.started_at is None or counts.get(DrainServerState.BLOCKED, 0):
        return None, None
    if moved and request.afterwards is Afterwards.OWNERS:
        return None, None
    movable = counts.get(DrainServerState.PENDING, 0) + counts.get(DrainServerState.ASKED, 0) - progress.held
    end, delay = now, None
    if movable > 0:
        end = _after(request.windows, now, _seconds(drain, progress, movable, now))
        if _first_open(request.windows, now) > now:
            delay = Delay.WINDOW
    if progress.held_until is not None:
        may_go = _first_open(request.windows, progress.held_until)
        last = may_go + timedelta(seconds=progress.held_seconds)
        if last > end:
            end, delay = last, Delay.WINDOW if may_go > progress.held_until else Delay.HOLD
    if moved and request.afterwards is Afterwards.CONFIRM_LATER:
        end += timedelta(hours=request.confirm_after or 0.0)
    return (end, delay) if end > now else (None, None)


def _seconds(drain: Drain, progress: DrainProgress, movable: int, now: datetime) -> float:
    """Seconds with an open window that the servers which may go still need."""
    arrived = sum(count for state, count in progress.servers.items() if state in ARRIVED)
    if arrived and drain.started_at is not None:
        return _open_seconds(drain.request.windows, drain.started_at, now) / arrived * movable
    at_once = drain.request.limits.planned().total or 1
    return progress.seconds_left / min(at_once, movable)


def _open_seconds(windows: list[Window], begin: datetime, end: datetime) -> float:
    if not windows:
        return (end - begin).total_seconds()
    spans = takewhile(lambda opening: opening.start < end, openings(windows, begin))
    return sum((min(each.end, end) - max(each.start, begin)).total_seconds() for each in spans)


def _after(windows: list[Window], begin: datetime, seconds: float) -> datetime:
    """When so many seconds with an open window are over."""
    for opening in openings(windows, begin):
        start = max(opening.start, begin)
        here = (opening.end - start).total_seconds()
        if seconds <= here:
            return start + timedelta(seconds=seconds)
        seconds -= here
    return begin + timedelta(seconds=seconds)


def _first_open(windows: list[Window], moment: datetime) -> datetime:
    return max(moment, next(openings(windows, moment)).start) if windows else moment


def _utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)
