"""What may begin now: windows by the wall's clock, limits, order."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from causeway.drains import pace
from causeway.model.drains import DrainServer, DrainServerState, First, Limits, Window

MONDAY = datetime(2026, 3, 2)
ZURICH = "Europe/Zurich"


def at(day: int, clock: str, zone: str = "UTC", *, week: datetime = MONDAY) -> datetime:
    """UTC without a zone, of a weekday's clock in a zone."""
    hour, minute = map(int, clock.split(":"))
    local = (week + timedelta(days=day)).replace(hour=hour, minute=minute, tzinfo=ZoneInfo(zone))
    return local.astimezone(UTC).replace(tzinfo=None)


def test_without_windows_moves_may_always_begin() -> None:
    assert pace.is_open([], MONDAY)
    assert pace.next_opening([], MONDAY) is None


@pytest.mark.parametrize(
    ("day", "clock", "open_then"),
    [
        (4, "21:59", False),
        (4, "22:00", True),
        (5, "05:59", True),
        (5, "06:00", False),
        (5, "22:30", False),
        (0, "03:00", False),
    ],
)
def test_an_end_that_is_not_after_its_start_is_the_next_days(day: int, clock: str, open_then: bool) -> None:
    friday_night = Window([4], "22:00", "06:00", ZURICH)
    assert pace.is_open([friday_night], at(day, clock, ZURICH)) is open_then


def test_a_window_from_one_time_to_the_same_is_a_day_long() -> None:
    window = Window([2], "12:00", "12:00")
    assert [pace.is_open([window], at(day, clock)) for day, clock in ((2, "11:59"), (2, "12:00"), (3, "11:59"))] == [
        False,
        True,
        True,
    ]
    assert not pace.is_open([window], at(3, "12:00"))


def test_sunday_night_goes_on_in_the_next_week() -> None:
    assert pace.is_open([Window([6], "22:00", "02:00")], at(0, "01:00"))


def test_windows_go_by_the_clock_of_their_zone_in_summer_and_in_winter() -> None:
    window = Window(list(range(7)), "22:00", "23:00", ZURICH)
    assert pace.is_open([window], datetime(2026, 1, 15, 21, 30))
    assert not pace.is_open([window], datetime(2026, 7, 15, 21, 30))
    assert pace.is_open([window], datetime(2026, 7, 15, 20, 30))


def test_a_window_that_begins_when_clocks_are_turned_forward_begins_after_that() -> None:
    # In the night to 29 March 2026 it is 03:00 right after 01:59.
    window = Window([6], "02:30", "04:00", ZURICH)
    assert not pace.is_open([window], datetime(2026, 3, 29, 0, 59))
    assert pace.is_open([window], datetime(2026, 3, 29, 1, 0))
    assert not pace.is_open([window], datetime(2026, 3, 29, 2, 0))


def test_an_hour_that_comes_twice_is_open_twice() -> None:
    # In the night to 25 October 2026 it is 02:00 right after the first 02:59.
    window = Window([6], "02:00", "03:00", ZURICH)
    before = datetime(2026, 10, 24, 23, 30)
    found = [pace.is_open([window], before + timedelta(hours=hours)) for hours in range(4)]
    assert found == [False, True, True, False]


CLOCKS = st.builds(lambda hour, minute: f"{hour:02}:{minute:02}", st.integers(0, 23), st.integers(0, 59))
WINDOWS = st.lists(
    st.builds(
        Window,
        st.lists(st.integers(0, 6), min_size=1, max_size=7, unique=True),
        CLOCKS,
        CLOCKS,
        st.sampled_from(["UTC", ZURICH, "America/New_York", "Asia/Kolkata"]),
    ),
    min_size=1,
    max_size=3,
)
MOMENTS = st.datetimes(datetime(2026, 1, 1), datetime(2027, 12, 31))


@given(WINDOWS, MOMENTS)
def test_what_is_said_to_open_next_opens_then(windows: list[Window], now: datetime) -> None:
    opening = pace.next_opening(windows, now)
    if pace.is_open(windows, now):
        assert opening is None
    else:
        assert opening is not None and opening > now
        assert pace.is_open(windows, opening)


@given(WINDOWS, MOMENTS, st.floats(0, 1))
def test_nothing_is_open_before_that(windows: list[Window], now: datetime, part: float) -> None:
    fixed = [Window(window.days, window.start, window.end, "Asia/Kolkata") for window in windows]
    opening = pace.next_opening(fixed, now)
    if opening is not None:
        moment = now + (opening - now) * part
        assert moment >= opening or not pace.is_open(fixed, moment)


HOSTS = st.sampled_from(["one", "two", "three"])
CELLS = st.sampled_from(["cell1", "cell2"])
SERVERS = st.lists(
    st.builds(
        DrainServer,
        drain_id=st.just("drain"),
        instance_uuid=st.uuids().map(str),
        state=st.sampled_from(list(DrainServerState)),
        source_cell=CELLS,
        source_host=HOSTS,
        target_cell=st.none() | CELLS,
        target_host=st.none() | HOSTS,
        bytes=st.integers(0, 1 << 40),
        memory_mb=st.integers(0, 1 << 20),
        not_before=st.none() | st.just(MONDAY) | st.just(MONDAY + timedelta(hours=1)),
    ),
    max_size=40,
)
LIMITS = st.builds(
    Limits,
    total=st.integers(1, 10),
    per_source_host=st.integers(1, 5),
    per_target_host=st.integers(1, 5),
    per_cell_pair=st.integers(1, 5),
)


def begin(servers: list[DrainServer], limits: Limits, first: First = First.LARGEST) -> list[DrainServer]:
    """As a look does, if none of them is busy."""
    load, begun = pace.load_of(servers), []
    for server in pace.waiting(servers, first, MONDAY):
        if load.has_room(limits, server):
            load.add(server)
            begun.append(server)
    return begun


@given(SERVERS, LIMITS)
def test_limits_are_kept_unless_they_were_exceeded_before(servers: list[DrainServer], limits: Limits) -> None:
    before = [server for server in servers if server.state in pace.UNDER_WAY]
    begun = begin(servers, limits)
    for most, place in (
        (limits.total, lambda _server: "all"),
        (limits.per_source_host, lambda server: server.source_host),
        (limits.per_target_host, lambda server: server.target_host),
        (limits.per_cell_pair, lambda server: server.target_cell and (server.source_cell, server.target_cell)),
    ):
        was, more = Counter(map(place, before)), Counter(map(place, begun))
        for key in more:
            if key is not None:
                assert was[key] + more[key] <= most


@given(SERVERS, LIMITS)
def test_nothing_waits_for_which_there_is_room(servers: list[DrainServer], limits: Limits) -> None:
    begun = begin(servers, limits)
    load = pace.load_of(servers)
    for server in begun:
        load.add(server)
    for server in pace.waiting(servers, First.LARGEST, MONDAY):
        assert server in begun or not load.has_room(limits, server)


@given(SERVERS, st.sampled_from(First))
def test_only_those_whose_time_has_come_go_in_order_of_size(servers: list[DrainServer], first: First) -> None:
    found = pace.waiting(servers, first, MONDAY)
    assert all(server.state is DrainServerState.PENDING and pace.is_due(server, MONDAY) for server in found)
    sizes = [server.bytes + server.memory_mb * 1024 * 1024 for server in found]
    assert sizes == sorted(sizes, reverse=first is First.LARGEST)
    due = [
        server for server in servers if server.state is DrainServerState.PENDING and server.not_before in (None, MONDAY)
    ]
    assert len(found) == len(due)
