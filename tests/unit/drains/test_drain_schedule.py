"""The simulation of a drain: limits hold at every moment, nobody waits without need, and what bounds it is found."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from causeway.drains.schedule import Pace, Times, Transfer, bound_of, simulate
from causeway.drains.windows import is_open
from causeway.model.drains import First, Limits, Window

BEGIN = datetime(2027, 3, 1)  # a Monday

transfers_of = st.lists(
    st.builds(
        lambda source, target, mib, seconds, held: (source, target, float(mib), float(seconds), held),
        st.integers(0, 3),
        st.integers(0, 3),
        st.integers(0, 5000),
        st.integers(0, 60),
        st.sampled_from([None, None, None, 100, 10_000]),
    ),
    max_size=25,
)
limits_of = st.builds(Limits, st.integers(1, 6), st.integers(1, 3), st.integers(1, 3), st.integers(1, 4))
windows_of = st.lists(
    st.builds(
        Window,
        st.lists(st.integers(0, 6), min_size=1, max_size=7, unique=True),
        st.sampled_from(["00:00", "08:30", "22:00"]),
        st.sampled_from(["00:00", "06:00", "09:00"]),
        st.sampled_from(["UTC", "Europe/Zurich", "America/New_York", "Pacific/Auckland"]),
    ),
    max_size=2,
)


def transfers(drawn: Sequence[tuple[int, int, float, float, int | None]]) -> list[Transfer]:
    return [
        Transfer(
            f"s{number}",
            f"source{source}",
            f"target{target}",
            ("cell1", f"cell{2 + target % 2}"),
            mib,
            seconds,
            None if held is None else BEGIN + timedelta(seconds=held),
        )
        for number, (source, target, mib, seconds, held) in enumerate(drawn)
    ]


def most_at_once(moves: Sequence[Transfer], times: Times) -> int:
    # At one moment those that end make room before others begin.
    events = sorted([(times.ended[move.id], 0) for move in moves] + [(times.began[move.id], 1) for move in moves])
    now = most = 0
    for _when, begins in events:
        now += 1 if begins else -1
        most = max(most, now)
    return most


@settings(max_examples=300)
@given(drawn=transfers_of, limits=limits_of, windows=windows_of, first=st.sampled_from(First))
def test_limits_and_windows_and_holds_are_kept(
    drawn: list[tuple[int, int, float, float, int | None]], limits: Limits, windows: list[Window], first: First
) -> None:
    moves = transfers(drawn)
    times = simulate(moves, Pace(limits, 100.0, tuple(windows), first), BEGIN)
    assert times.began.keys() == times.ended.keys() == {move.id for move in moves}
    assert limits.total is not None and most_at_once(moves, times) <= limits.total
    for place, most in (
        ("source", limits.per_source_host),
        ("target", limits.per_target_host),
        ("cells", limits.per_cell_pair),
    ):
        for where in {getattr(move, place) for move in moves}:
            here = [move for move in moves if getattr(move, place) == where]
            assert most is not None and most_at_once(here, times) <= most
    for move in moves:
        began = BEGIN + timedelta(seconds=times.began[move.id])
        assert is_open(windows, began + timedelta(microseconds=1))
        assert move.not_before is None or began >= move.not_before - timedelta(microseconds=1)
        # No link is faster than it is, however few share it.
        alone = move.mib / 100.0 + move.seconds
        assert times.ended[move.id] - times.began[move.id] >= alone * (1 - 1e-9) - 1e-6


@settings(max_examples=100)
@given(drawn=transfers_of, limits=limits_of)
def test_nobody_waits_who_could_go(drawn: list[tuple[int, int, float, float, int | None]], limits: Limits) -> None:
    moves = [move for move in transfers(drawn) if move.not_before is None]
    times = simulate(moves, Pace(limits, 100.0), BEGIN)
    assert limits.total is not None and limits.per_cell_pair is not None
    assert limits.per_source_host is not None and limits.per_target_host is not None
    for when in {0.0, *times.ended.values()}:
        running = [move for move in moves if times.began[move.id] <= when < times.ended[move.id]]
        if len(running) >= limits.total:
            continue
        for move in moves:
            if times.began[move.id] > when:
                assert (
                    sum(other.source == move.source for other in running) >= limits.per_source_host
                    or sum(other.target == move.target for other in running) >= limits.per_target_host
                    or sum(other.cells == move.cells for other in running) >= limits.per_cell_pair
                )


@settings(max_examples=60)
@given(drawn=transfers_of, limits=limits_of, windows=windows_of)
def test_twice_as_much_of_what_bounds_it_is_never_slower(
    drawn: list[tuple[int, int, float, float, int | None]], limits: Limits, windows: list[Window]
) -> None:
    moves, pace = transfers(drawn), Pace(limits, 100.0, tuple(windows))
    seconds = simulate(moves, pace, BEGIN).makespan
    bound = bound_of(moves, pace, BEGIN, seconds)
    assert bound is None or bound.seconds < seconds


def line(
    count: int, *, mib: float = 1000.0, seconds: float = 0.0, sources: int = 1, targets: int = 100
) -> list[Transfer]:
    return [
        Transfer(f"s{n:03}", f"source{n % sources}", f"target{n % targets}", ("cell1", "cell2"), mib, seconds)
        for n in range(count)
    ]


def test_moves_of_one_host_share_its_rate() -> None:
    times = simulate(line(2), Pace(Limits(), 100.0), BEGIN)
    assert times.ended == {"s000": pytest.approx(20.0), "s001": pytest.approx(20.0)}
    # What is left has the whole link again.
    one, other = line(2)
    smaller = Transfer(other.id, other.source, other.target, other.cells, 500.0, 0.0)
    times = simulate([one, smaller], Pace(Limits(), 100.0), BEGIN)
    assert times.ended == {"s001": pytest.approx(10.0), "s000": pytest.approx(15.0)}


@pytest.mark.parametrize(
    ("moves", "limits", "what", "seconds"),
    [
        (line(8), Limits(), "the hosts' rate of 100 MiB/s", 40.0),
        (line(8, mib=0, seconds=10), Limits(per_source_host=1), "the limit of 1 move at once from a host", 40.0),
        (
            line(8, mib=0, seconds=10, sources=8, targets=1),
            Limits(per_target_host=2),
            "the limit of 2 moves at once to a host",
            20.0,
        ),
        (line(8, mib=0, seconds=10, sources=8), Limits(total=2), "the limit of 2 moves at once in all", 20.0),
        (
            line(8, mib=0, seconds=10, sources=8),
            Limits(per_cell_pair=4),
            "the limit of 4 moves at once between two cells",
            10.0,
        ),
    ],
)
def test_what_bounds_a_drain_is_found(moves: list[Transfer], limits: Limits, what: str, seconds: float) -> None:
    pace = Pace(limits, 100.0)
    makespan = simulate(moves, pace, BEGIN).makespan
    bound = bound_of(moves, pace, BEGIN, makespan)
    assert bound is not None and bound.what == what and bound.seconds == pytest.approx(seconds)


def test_windows_bound_a_drain_that_waits_for_them() -> None:
    pace = Pace(Limits(total=1), 100.0, (Window([0], "01:00", "02:00"),))
    moves = line(3, mib=0, seconds=2400)
    times = simulate(moves, pace, BEGIN)
    # Two begin in the first window, the second one's end is after it; the third waits for a week.
    assert sorted(times.began.values()) == [3600, 6000, 3600 + 7 * 86400]
    bound = bound_of(moves, pace, BEGIN, times.makespan)
    assert bound is not None and bound.seconds < 86400


def test_one_move_that_only_takes_its_time_is_bound_by_nothing() -> None:
    moves = line(1, mib=0, seconds=10)
    assert bound_of(moves, Pace(Limits(), 100.0), BEGIN, 10.0) is None
    assert simulate([], Pace(Limits(), 100.0), BEGIN).makespan == 0.0


@pytest.mark.parametrize(("first", "order"), [(First.LARGEST, ["b", "c", "a"]), (First.SMALLEST, ["a", "c", "b"])])
def test_the_first_to_go_are_as_asked(first: First, order: list[str]) -> None:
    moves = [
        Transfer(name, "s", "t", ("cell1", "cell2"), mib, 1.0) for name, mib in (("a", 1.0), ("b", 9.0), ("c", 5.0))
    ]
    times = simulate(moves, Pace(Limits(total=1), 100.0, first=first), BEGIN)
    assert sorted(times.began, key=lambda name: times.began[name]) == order


def test_who_waits_for_a_full_host_keeps_nobody_else_from_going() -> None:
    cells = ("cell1", "cell2")
    moves = [
        Transfer("longest", "other", "t1", cells, 4.0, 1000.0),
        Transfer("before", "s", "t3", cells, 3.0, 10.0),
        # Its host is free when the one before has gone, and its target is not.
        Transfer("waits", "s", "t1", cells, 2.0, 10.0),
        Transfer("goes", "s", "t2", cells, 1.0, 10.0),
    ]
    times = simulate(moves, Pace(Limits(per_source_host=1, per_target_host=1), 100.0), BEGIN)
    assert times.began["goes"] == times.ended["before"] < times.began["waits"] == times.ended["longest"]
