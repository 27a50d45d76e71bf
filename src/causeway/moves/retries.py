"""Whether a step that failed before the pivot is done again, and when.

What was refused is undone at once. What failed for a passing reason (`CausewayError.passing`) is done again, with growing
pauses, until patience is over: ``[moves] patience`` seconds from the step's first failure on, or ``patience_while_off`` while
the move has the guest powered off. What failed in a way that nobody foresaw is done again a few times (``[moves] attempts``).
"""

from __future__ import annotations

from datetime import datetime

from causeway import errors
from causeway.model.moves import MoveStep
from causeway.moves.recipe import Step
from causeway.moves.run import Run

# Seconds: a longer pause is no conductor's. The move is let go until then.
HELD = 3.0
# Seconds: the longest pause while a guest is off.
LONGEST_WHILE_OFF = 3.0
# Seconds: the shortest pause for a host that is down, longer than `HELD`. It is not back sooner than it reports.
WHILE_DOWN = 5.0


def pause_after(run: Run, step: Step, attempt: int, failure: errors.CausewayError, now: datetime) -> float | None:
    """Seconds until the step is done again; None if its move is to be undone. ``attempt`` counts from 1."""
    options = run.unguarded.conf.moves
    if not failure.passing:
        return None
    if failure.few_tries and attempt >= options.attempts:
        return None
    if _patience_is_over(run, step, now):
        return None
    longest = (
        min(options.stuck_retry_interval, LONGEST_WHILE_OFF) if is_off(run, step) else options.stuck_retry_interval
    )
    pause: float = min(options.first_pause * 2 ** min(attempt - 1, 20), longest)
    return max(pause, WHILE_DOWN) if isinstance(failure, errors.HostDown) else pause


def pause_when_stuck(run: Run, attempt: int, failure: errors.CausewayError) -> float:
    """Seconds that a move is left alone which can go neither forward nor back: fewer while its host may be back soon."""
    options = run.unguarded.conf.moves
    longest: float = options.stuck_retry_interval
    is_soon = isinstance(failure, errors.HostDown) and attempt < options.attempts
    return min(WHILE_DOWN, longest) if is_soon else longest


def is_hopeless(run: Run, step: Step, record: MoveStep, now: datetime) -> bool:
    """Whether a step in doubt was broken off too often: it may be what ends the conductors that do it."""
    return record.attempt >= 2 * run.unguarded.conf.moves.attempts and _patience_is_over(run, step, now)


def is_off(run: Run, step: Step) -> bool:
    """Whether somebody may miss the guest while the step is at work."""
    return step.has_guest_off and run.memory.was_running


def _patience_is_over(run: Run, step: Step, now: datetime) -> bool:
    options = run.unguarded.conf.moves
    patience = options.patience_while_off if is_off(run, step) else options.patience
    since = run.move.failing_since
    return patience <= 0 or (since is not None and (now - since).total_seconds() >= patience)
