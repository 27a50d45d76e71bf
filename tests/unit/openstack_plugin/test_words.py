"""How people read bytes, seconds and operations."""

from __future__ import annotations

from typing import Any

import pytest

from causeway.openstack_plugin import words


@pytest.mark.parametrize(
    ("count", "text"),
    [(None, ""), (0, "0 bytes"), (1023, "1023 bytes"), (1536, "1.5 KiB"), (5 << 30, "5.0 GiB"), (2**60, "1024.0 PiB")],
)
def test_sizes_are_written_in_units(count: int | None, text: str) -> None:
    assert words.size(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, ""),
        (0, "0 s"),
        (0.04, "0.04 s"),
        (99, "99.0 s"),
        (101, "2 min"),
        (3600, "1 h"),
        (7300, "2 h 2 min"),
        (90061, "1 d 1 h 1 min"),
    ],
)
def test_durations_are_written_in_units(seconds: float | None, text: str) -> None:
    assert words.duration(seconds) == text


def operation(**fields: Any) -> dict[str, Any]:
    known = {"state": "running", "waits_for": None, "is_cancel_requested": False, "is_cancellable": True, "error": None}
    return known | fields


def test_words_say_what_an_operation_waits_for() -> None:
    wait = {"reason": "It is down.", "until": "2026-08-01T10:11:12.345", "host": "host1"}
    assert words.standing(operation(waits_for=wait)) == "running, waits for host1 until 10:11:12 UTC"
    assert words.standing(operation(waits_for=wait | {"until": None, "host": None})) == "running, waits"
    assert words.reason(operation(waits_for=wait, error={"message": "Another."})) == "It is down."


def test_an_operation_that_is_to_be_cancelled() -> None:
    assert words.standing(operation(is_cancel_requested=True)) == "running, to be cancelled"
    assert words.standing(operation(state="failed", is_cancel_requested=True, is_cancellable=False)) == "failed"


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"bytes_done": None}, ""),
        ({"bytes_total": 4000, "percent": 25}, "1,000 of 4,000 (25 %)"),
        ({"round": 2, "seconds_left": 9}, "1,000, round 2, about 9 s left"),
        ({"round": 3, "ended_at": "2026-08-01"}, "1,000 in 3 rounds"),
        ({"round": 1, "ended_at": "2026-08-01"}, "1,000"),
    ],
)
def test_words_say_how_much_is_transferred(fields: dict[str, Any], text: str) -> None:
    known = dict.fromkeys(("bytes_total", "percent", "round", "seconds_left", "ended_at"))
    assert words.transferred(known | {"bytes_done": 1000} | fields) == text


def test_a_step_shows_both_of_its_errors() -> None:
    step = {
        "step": "FinishAtTarget", "phase": "undo", "state": "failed", "attempt": 3, "host": "host1", "seconds": 1.5,
        "bytes_done": None, "error": {"message": "Last.", "details": "So."}, "first_error": {"message": "First."},
    }  # fmt: skip
    assert words.step(step) == (
        "FinishAtTarget (undo) on host1: failed in 1.500 s, attempt 3; Last. So. At first: First."
    )


def test_a_drain_says_how_many_have_arrived_and_when_the_last_one_may() -> None:
    progress = {
        "servers": {"done": 12, "confirming": 1, "pending": 1}, "ends_at": "2026-11-30T04:43:00", "delayed_by": "hold",
        "meets_deadline": None,
    }  # fmt: skip
    hold = "13 of 14; the last not before 30 Nov 04:43 UTC (hold)"
    assert words.servers_of_drain({"progress": progress}) == hold
    assert words.servers_of_drain({"progress": progress | {"meets_deadline": False}}) == f"{hold}, after its deadline"
    soon = words.servers_of_drain({"progress": progress | {"delayed_by": None}})
    assert soon == "13 of 14; the last at about 30 Nov 04:43 UTC"
    # A service of release 0.1.0.
    assert words.servers_of_drain({"progress": {"servers": {"done": 1}}}) == "1 of 1"
