"""Parts in lanes run at the same time, and end together."""

from __future__ import annotations

import _thread
import signal
from collections.abc import Iterator
from threading import Event

import pytest

from verify import lanes
from verify.parts import Part

PATIENCE = 60


def part(name: str, lane: str | None = None, minutes: float = 1, group: str = "some") -> Part:
    return Part(group, name, "", (), minutes, lane=lane)


def names(batches: list[lanes.Lanes]) -> list[list[list[str]]]:
    return [[[each.name for each in lane] for lane in batch] for batch in batches]


def test_lanes_of_a_group_run_at_the_same_time_and_everything_else_alone() -> None:
    parts = [part("1"), part("2", "a"), part("3", "b"), part("4", "a"), part("5"), part("6", "a", group="other")]
    assert names(lanes.batches(parts)) == [[["1"]], [["2", "4"], ["3"]], [["5"]], [["6"]]]


def test_the_longest_lane_says_how_long_it_takes() -> None:
    assert lanes.minutes([part("1", "a", 7), part("2", "b", 22), part("3", "a", 17), part("4", minutes=10)]) == 34


def test_a_lane_runs_its_parts_one_after_another_beside_the_other_lane() -> None:
    began, ran = {name: Event() for name in "123"}, []

    def run_part(each: Part, _interrupted: Event) -> None:
        began[each.name].set()
        # The first two only end beside one another.
        other = {"1": "2", "2": "1"}.get(each.name)
        assert other is None or began[other].wait(PATIENCE)
        ran.append(each.name)

    lanes.run([[part("1", "a"), part("3", "a")], [part("2", "b")]], run_part)
    assert sorted(ran) == ["1", "2", "3"]
    assert ran.index("1") < ran.index("3")


@pytest.fixture
def obeys_ctrl_c() -> Iterator[None]:
    """What runs in the background of a shell ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("obeys_ctrl_c")
def test_ctrl_c_ends_all_lanes_and_begins_no_further_part() -> None:
    began = []

    def run_part(each: Part, interrupted: Event) -> None:
        began.append(each.name)
        if len(began) == 2:
            _thread.interrupt_main()
        assert interrupted.wait(PATIENCE)

    with pytest.raises(KeyboardInterrupt):
        lanes.run([[part("1", "a"), part("3", "a")], [part("2", "b")]], run_part)
    assert sorted(began) == ["1", "2"]
