"""When moves may begin: windows in the week, in their own time zones. Moments are UTC without a zone, as everywhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from causeway.model.drains import Window

_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Opening:
    """From ``start`` until ``end``, exclusive."""

    start: datetime
    end: datetime


def is_open(windows: Sequence[Window], moment: datetime) -> bool:
    """Whether moves may begin now. Without windows they always may."""
    return not windows or next(openings(windows, moment)).start <= moment


def openings(windows: Sequence[Window], after: datetime) -> Iterator[Opening]:
    """Yields when windows are open from ``after`` on, in order.

    Windows that touch are joined. Endless, unless there are no windows.
    """
    begun: Opening | None = None
    for opening in _by_start(windows, after):
        if begun is None:
            begun = opening
        elif opening.start <= begun.end:
            begun = Opening(begun.start, max(begun.end, opening.end))
        else:
            yield begun
            begun = opening
        if begun.end - max(begun.start, after) > 8 * _DAY:
            # No gap in a whole week: there never is one.
            yield Opening(begun.start, datetime.max)
            return


def _by_start(windows: Sequence[Window], after: datetime) -> Iterator[Opening]:
    """Yields the openings of all windows by their start, without those that are over by ``after``."""
    if not windows:
        return
    waiting: list[Opening] = []
    # Zones are up to 14 hours ahead of UTC, and windows begin the day before.
    day = after.date() - 2 * _DAY
    while day < date.max - 3 * _DAY:
        waiting += [_on(window, day) for window in windows if day.weekday() in window.days]
        waiting.sort(key=lambda opening: opening.start)
        # Openings of later days begin later: a day begins at most 14 hours before UTC's.
        sure = datetime.combine(day, time())
        while waiting and waiting[0].start < sure:
            opening = waiting.pop(0)
            if opening.end > after:
                yield opening
        day += _DAY


def _on(window: Window, day: date) -> Opening:
    zone = ZoneInfo(window.zone)
    start, end = time.fromisoformat(window.start), time.fromisoformat(window.end)
    last = day if end > start else day + _DAY
    return Opening(_utc(datetime.combine(day, start, zone)), _utc(datetime.combine(last, end, zone)))


def _utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(tzinfo=None)
