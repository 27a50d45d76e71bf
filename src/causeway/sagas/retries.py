"""Whether a step that failed before the pivot is retried, and when.

What was refused is undone at once. What failed for a passing reason (`CausewayError.passing`) is retried with growing pauses,
until the step's `Patience` is over, counted from its first failure. What failed in a way that nobody foresaw is retried a few
times (``attempts``).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from causeway import errors
from causeway.model.sagas import StepRecord
from causeway.sagas.environment import Options

# Seconds: for a longer pause no worker waits. The saga is released until then.
HELD = 3.0
# Seconds: the shortest pause for what is not back soon, longer than `HELD`.
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


# For what somebody waits for.
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
    """Seconds that a saga is left alone which can go neither forward nor back; fewer while its cause may be gone soon."""
    is_soon = failure.takes_long and attempt < options.attempts
    return min(WHILE_DOWN, options.stuck_retry_interval) if is_soon else options.stuck_retry_interval


def is_hopeless(
    record: StepRecord, *, patience: Patience, failing_since: datetime | None, now: datetime, options: Options
) -> bool:
    """Whether a step in doubt was interrupted too often: it may be what ends the processes that take it."""
    return record.attempt >= 2 * options.attempts and patience.is_over(failing_since, now)
