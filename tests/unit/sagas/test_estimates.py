"""How long a transfer takes yet."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from causeway.model.sagas import StepPhase, StepRecord, seconds_left

START = datetime(2026, 1, 1)


@pytest.mark.parametrize(
    ("done", "total", "seconds", "left"),
    [
        (25, 100, 60.0, 180),
        (100, 100, 60.0, 0),
        # An estimate of all that travels may have been too low.
        (120, 100, 60.0, 0),
        (25, 100, 0.5, None),
        (0, 100, 60.0, None),
        (None, None, 60.0, None),
        (25, None, 60.0, None),
    ],
)
def test_the_rest_takes_as_long_as_at_the_rate_so_far(
    done: int | None, total: int | None, seconds: float, left: int | None
) -> None:
    assert seconds_left(done, total, START, START + timedelta(seconds=seconds)) == left


def test_the_rate_counts_since_the_round_or_the_last_attempt_began() -> None:
    step = StepRecord("CopyWhileRunning", StepPhase.DO, 1, bytes_done=50, bytes_total=100, started_at=START)
    now = START + timedelta(seconds=90)
    assert step.seconds_left(now) == 90
    step.tried_at = START + timedelta(seconds=30)
    assert step.seconds_left(now) == 60
    step.bytes_since = START + timedelta(seconds=80)
    assert step.seconds_left(now) == 10
    step.ended_at = now
    assert step.seconds_left(now) is None
