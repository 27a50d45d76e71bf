"""Whether a step that failed before the pivot is retried, and when.

A step that was refused is undone at once. A step that failed for a passing reason (`CausewayError.passing`) is retried with
growing pauses until its `Patience`, which begins with its first failure, is over. A step that failed with an unexpected error is
retried a few times (``attempts``), unless the step's patience `persists`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from causeway import errors
from causeway.model.sagas import StepRecord
from causeway.sagas.environment import Options

# Seconds: before a longer pause the saga is released, so that it holds no worker.
LONGEST_HELD_PAUSE = 3.0
# Seconds: the shortest pause after a failure that does not pass soon. It is longer than `LONGEST_HELD_PAUSE`.
SHORTEST_PAUSE_WHILE_DOWN = 5.0


@dataclass(frozen=True)
class Patience:
    """How long a step is retried. ``seconds``: from its first failure. ``longest_pause``: between two attempts, in seconds.

    ``persists``: what may pass or not (`CausewayError.few_tries`) is retried as long as what passes.
    """

    seconds: float
    longest_pause: float
    persists: bool = False

    def is_over(self, failing_since: datetime | None, now: datetime) -> bool:
        return self.seconds <= 0 or (
            failing_since is not None and (now - failing_since).total_seconds() >= self.seconds
        )


# For steps whose end a requester is waiting for: they are not retried.
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
    """Returns the seconds until the step is retried; None if the saga must be rolled back. ``attempt`` counts from 1."""
    if not failure.passing or (failure.few_tries and not patience.persists and attempt >= options.attempts):
        return None
    if patience.is_over(failing_since, now):
        return None
    pause: float = min(options.first_pause * 2 ** min(attempt - 1, 20), patience.longest_pause)
    return max(pause, SHORTEST_PAUSE_WHILE_DOWN) if failure.takes_long else pause


def pause_when_stuck(failure: errors.CausewayError, *, attempt: int, options: Options) -> float:
    """Returns the seconds until a stuck saga is tried again: fewer in the first attempts if the cause may pass soon."""
    is_soon = failure.takes_long and attempt < options.attempts
    return min(SHORTEST_PAUSE_WHILE_DOWN, options.stuck_retry_interval) if is_soon else options.stuck_retry_interval


def is_hopeless(
    record: StepRecord, *, patience: Patience, failing_since: datetime | None, now: datetime, options: Options
) -> bool:
    """Whether a step in doubt was interrupted so often that the step itself may kill the processes that run it."""
    return record.attempt >= 2 * options.attempts and patience.is_over(failing_since, now)
