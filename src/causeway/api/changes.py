"""``changes-since`` and ``changes-before``: times of users, and what the databases keep.

Users see and give whole seconds, since Nova keeps no more; the databases keep microseconds. So both filters include the
whole second that is given, with everything that changed in it.
"""

from __future__ import annotations

from datetime import datetime

from causeway import errors
from causeway.api.validation import parse_time

Window = tuple[datetime | None, datetime | None]


def window(since: str | None, before: str | None) -> Window:
    """The first and the last moment, both included. Raises BadRequest if one is not a time, or the last is before the first."""
    first, last = _time("changes-since", since), _time("changes-before", before)
    if first is not None and last is not None and last < first:
        raise errors.BadRequest("The value of changes-since must be less than or equal to changes-before.")
    return first, None if last is None else end_of_second(last)


def second_of(moment: datetime) -> tuple[datetime, datetime]:
    """The first and the last moment of the second."""
    return moment.replace(microsecond=0), end_of_second(moment)


def end_of_second(moment: datetime) -> datetime:
    return moment.replace(microsecond=999_999)


def _time(name: str, text: str | None) -> datetime | None:
    if text is None:
        return None
    moment = parse_time(text)
    if moment is None:
        raise errors.BadRequest(f"Invalid value for {name}: {text} is not a time.")
    return moment
