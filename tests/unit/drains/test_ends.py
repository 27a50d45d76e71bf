"""The end of a running drain, as it is estimated: holds, windows and deadlines count."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from causeway.drains import ends
from causeway.model.drains import (
    Afterwards,
    Delay,
    Drain,
    DrainProgress,
    DrainRequest,
    DrainServerState,
    DrainState,
    Scope,
    Window,
)

DONE, PENDING, ASKED = DrainServerState.DONE, DrainServerState.PENDING, DrainServerState.ASKED
# A Saturday.
NOW = datetime(2026, 11, 28, 4, 50)
BEGAN = NOW - timedelta(hours=1)
HOLD = datetime(2026, 11, 30, 4, 43)


def estimated(progress: DrainProgress, *, state: DrainState = DrainState.RUNNING, **request: object) -> DrainProgress:
    wanted = DrainRequest("empty", Scope(cells=["cell1"]), **request)  # type: ignore[arg-type]
    ends.estimate(Drain(id="", request=wanted, state=state, started_at=BEGAN), progress, NOW)
    return progress


def held() -> DrainProgress:
    """All but one have arrived, and that one is on hold."""
    return DrainProgress({DONE: 13, PENDING: 1}, held=1, held_until=HOLD, held_seconds=60.0)


def test_a_drain_does_not_end_before_its_last_hold() -> None:
    found = estimated(held())
    assert found.ends_at == HOLD + timedelta(seconds=60)
    assert (found.delayed_by, found.meets_deadline) == (Delay.HOLD, None)


def test_what_is_on_hold_goes_when_a_window_opens() -> None:
    # 30 November is a Monday.
    found = estimated(held(), windows=[Window([2], "22:00", "23:00")])
    assert found.ends_at == datetime(2026, 12, 2, 22, 1)
    assert found.delayed_by is Delay.WINDOW


def test_a_deadline_is_met_or_not() -> None:
    assert estimated(held(), deadline=HOLD).meets_deadline is False
    assert estimated(held(), deadline=HOLD + timedelta(hours=1)).meets_deadline is True


def test_servers_that_may_go_take_as_long_as_those_that_went() -> None:
    found = estimated(DrainProgress({DONE: 4, PENDING: 7, ASKED: 1}))
    assert (found.ends_at, found.delayed_by) == (NOW + timedelta(hours=2), None)


def test_only_time_with_an_open_window_counts() -> None:
    # Open for the last half of the hour, and for ten minutes more: then again tomorrow.
    found = estimated(DrainProgress({DONE: 3, PENDING: 2}), windows=[Window(list(range(7)), "04:20", "05:00")])
    assert found.ends_at == datetime(2026, 11, 29, 4, 30)
    found = estimated(DrainProgress({DONE: 3, PENDING: 2}), windows=[Window(list(range(7)), "04:00", "04:30")])
    assert (found.ends_at, found.delayed_by) == (datetime(2026, 11, 29, 4, 20), Delay.WINDOW)


def test_before_anything_has_arrived_the_plan_says_how_long_it_takes() -> None:
    assert estimated(DrainProgress({PENDING: 40}, seconds_left=4000.0)).ends_at == NOW + timedelta(seconds=200)


@pytest.mark.parametrize(
    "found",
    [
        estimated(held(), state=DrainState.PAUSED),
        estimated(DrainProgress({DONE: 1, PENDING: 1, DrainServerState.BLOCKED: 1})),
        estimated(DrainProgress({DrainServerState.MOVED: 1, PENDING: 1}), afterwards=Afterwards.OWNERS),
    ],
)
def test_an_end_that_nobody_knows_is_not_said(found: DrainProgress) -> None:
    assert found.ends_at is None
