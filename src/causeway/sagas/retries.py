"""Whether a step that failed before the pivot is retried, and when.

A step that was refused is undone at once. A step that failed for a passing reason (`CausewayError.passing`) is retried with
growing pauses, until its `Patience` is over, counted from its first failure. A step that failed in an unforeseen way is retried
a few times (``attempts``).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from causeway import errors
from causeway.model.sagas import StepRecord
from causeway.sagas.environment import Options

# Seconds: in a longer pause the saga is released, and holds no worker.
HELD = 3.0
# Seconds: the shortest pause for a failure that will not pass soon, longer than `HELD`.
WHILE_DOWN = 5.0


@dataclass(frozen=True)
class Patience:
    """Seconds for which a step is retried, and its longest pause."""

    seconds: float
    longest_pause: float

    def is_over(self, failing_since: datetime | None, now: datetime) -> bool:
        return self.seconds <= 0 or (
            failing_since is not None and (now - failing_since).total_seconds() >= self.seconds
        )


# For steps whose end a requester waits for.
NONE = Patience(0.0, 0.0)


def pause_after(
    failure: errors.CausewayError,
    *,
    attempt: int,
    patience: Patience,
    failing_since: datetime | None,
    now: datetime,
    options: Options,
) -> float | None:
    """Seconds until the step is retried; None if its saga is to be rolled back. ``attempt`` counts from 1."""
    if not failure.passing or (failure.few_tries and attempt >= options.attempts):
        return None
    if patience.is_over(failing_since, now):
        return None
    pause: float = min(options.first_pause * 2 ** min(attempt - 1, 20), patience.longest_pause)
    return max(pause, WHILE_DOWN) if failure.takes_long else pause


def pause_when_stuck(failure: errors.CausewayError, *, attempt: int, options: Options) -> float:
    """Seconds until a stuck saga is tried again; fewer while the cause may pass soon."""
    is_soon = failure.takes_long and attempt < options.attempts
    return min(WHILE_DOWN, options.stuck_retry_interval) if is_soon else options.stuck_retry_interval


def is_hopeless(
    record: StepRecord, *, patience: Patience, failing_since: datetime | None, now: datetime, options: Options
) -> bool:
    """Whether a step in doubt was interrupted too often: the step itself may kill the processes that run it."""
    return record.attempt >= 2 * options.attempts and patience.is_over(failing_since, now)
