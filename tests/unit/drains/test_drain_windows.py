"""Windows in their own time zones, also across the days on which clocks change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from causeway.drains.windows import Opening, is_open, openings
from causeway.model.drains import Window

EVERY_DAY = [0, 1, 2, 3, 4, 5, 6]
NIGHTS = Window([0, 1, 2, 3, 4], "22:00", "06:00", "Europe/Zurich")


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


@pytest.mark.parametrize(
    ("moment", "is_it"),
    [
        ("2027-03-01T20:59", False),  # a Monday, 21:59 in Zurich
        ("2027-03-01T21:00", True),
        ("2027-03-02T04:59", True),
        ("2027-03-02T05:00", False),
        ("2027-03-06T04:59", True),  # the night that Friday began
        ("2027-03-06T21:30", False),  # Saturday
        ("2027-07-05T20:30", True),  # summer: 22:30 in Zurich
    ],
)
def test_nights_belong_to_the_day_on_which_they_begin(moment: str, is_it: bool) -> None:
    assert is_open([NIGHTS], at(moment)) is is_it


def test_no_windows_are_always_open() -> None:
    assert is_open([], at("2027-03-01T12:00"))
    assert list(openings([], at("2027-03-01"))) == []


def test_a_night_is_an_hour_shorter_when_clocks_go_forward() -> None:
    sunday = Window([5], "22:00", "06:00", "Europe/Zurich")
    (night,) = islice(openings([sunday], at("2027-03-27T12:00")), 1)
    assert night.end - night.start == timedelta(hours=7)


def test_windows_that_touch_are_one() -> None:
    halves = [Window([0], "00:00", "12:00"), Window([0], "12:00", "18:00"), Window([0], "17:00", "20:00")]
    assert next(openings(halves, at("2027-03-01T06:00"))) == Opening(at("2027-03-01T00:00"), at("2027-03-01T20:00"))


def test_a_window_that_ends_when_it_begins_is_a_day() -> None:
    assert next(openings([Window([0], "08:00", "08:00")], at("2027-03-01T09:00"))) == Opening(
        at("2027-03-01T08:00"), at("2027-03-02T08:00")
    )


def test_a_week_without_a_gap_has_no_end() -> None:
    (always,) = openings([Window(EVERY_DAY, "00:00", "00:00")], at("2027-03-01T09:00"))
    assert always.end == datetime.max


windows_of = st.lists(
    st.builds(
        Window,
        st.lists(st.integers(0, 6), min_size=1, max_size=4, unique=True),
        st.from_regex(r"([01][0-9]|2[0-3]):[0-5][0-9]", fullmatch=True),
        st.from_regex(r"([01][0-9]|2[0-3]):[0-5][0-9]", fullmatch=True),
        st.sampled_from(["UTC", "Europe/Zurich", "Asia/Kolkata", "Pacific/Kiritimati", "Pacific/Pago_Pago"]),
    ),
    min_size=1,
    max_size=3,
)


@settings(max_examples=200)
@given(windows=windows_of, minutes=st.integers(0, 365 * 24 * 60))
def test_a_window_is_open_if_a_clock_in_its_zone_says_so(windows: list[Window], minutes: int) -> None:
    moment = datetime(2027, 1, 1) + timedelta(minutes=minutes)
    assert is_open(windows, moment) is any(_clock_says(window, moment) for window in windows)


@settings(max_examples=100)
@given(windows=windows_of, minutes=st.integers(0, 365 * 24 * 60))
def test_openings_are_in_order_and_apart(windows: list[Window], minutes: int) -> None:
    moment = datetime(2027, 1, 1) + timedelta(minutes=minutes)
    found = list(islice(openings(windows, moment), 10))
    assert found[0].end > moment
    assert all(before.end < after.start for before, after in pairwise(found))


def _clock_says(window: Window, moment: datetime) -> bool:
    """By the clock on the wall, which is right but where clocks change."""
    zone = ZoneInfo(window.zone)
    local = moment.replace(tzinfo=UTC).astimezone(zone)
    for back in (0, 1):
        day = local.date() - timedelta(days=back)
        if day.weekday() not in window.days:
            continue
        start = datetime.combine(day, datetime.strptime(window.start, "%H:%M").time(), zone)
        last = day if window.end > window.start else day + timedelta(days=1)
        end = datetime.combine(last, datetime.strptime(window.end, "%H:%M").time(), zone)
        if start.astimezone(UTC) <= moment.replace(tzinfo=UTC) < end.astimezone(UTC):
            return True
    return False
