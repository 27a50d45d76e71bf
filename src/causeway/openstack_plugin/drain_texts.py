"""Reads what people write of a drain ("mon-fri 22:00-06:00 Europe/Zurich", "gen1.small=gen2.small", a date) for the API."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_WINDOW = re.compile(r"(?P<days>\S+) (?P<start>\d?\d:\d\d)-(?P<end>\d?\d:\d\d)(?: (?P<zone>\S+))?")


class Unreadable(ValueError):
    """The message says what was expected."""


def flavor(text: str) -> tuple[str, str]:
    old, is_there, new = text.partition("=")
    if not (old and is_there and new):
        raise Unreadable(f"'{text}' is not OLD=NEW")
    return old, new


def window(text: str) -> dict[str, Any]:
    found = _WINDOW.fullmatch(text.strip())
    if found is None:
        raise Unreadable(f"'{text}' is not 'DAYS HH:MM-HH:MM [ZONE]', such as 'mon-fri 22:00-06:00 Europe/Zurich'")
    days = sorted({day for part in found["days"].lower().split(",") for day in _days(part)})
    return {
        "days": days,
        "start": found["start"].zfill(5),
        "end": found["end"].zfill(5),
        "zone": found["zone"] or "UTC",
    }


def deadline(text: str) -> str:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise Unreadable(f"'{text}' is not a time such as 2027-03-01T06:00+01:00") from None
    return (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).isoformat()


def _days(text: str) -> list[int]:
    if text == "daily":
        return list(range(7))
    first, _dash, last = text.partition("-")
    try:
        begin, end = DAYS.index(first), DAYS.index(last or first)
    except ValueError:
        raise Unreadable(f"'{text}' is none of: daily, {', '.join(DAYS)}, or two with a dash") from None
    # A range such as fri-mon goes over the end of the week.
    return [(begin + day) % 7 for day in range((end - begin) % 7 + 1)]
