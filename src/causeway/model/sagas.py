"""The records of the journal: sagas and their steps, their states, and the allowed transitions.

A *saga* is one run of a recipe. Each step is written before it acts, and completed afterwards. States of a saga::

    proposed ──▶ refused      proposed: not accepted yet, and not run. refused: will never be run
       │
       ▼
    requested ──▶ running ──▶ done
                  │    │ ▲
                  ▼    ▼ │
              undoing  stuck        stuck: resumes by itself when its cause is gone
                  │ ▲
                  ▼ │
                stuck, failed       failed: everything was undone, the saga was rolled back

A running saga *waits* if it has no owner until ``lease_until``: a step failed for a passing reason (``error``), and is retried
then.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any


class SagaState(StrEnum):
    PROPOSED = "proposed"
    REFUSED = "refused"
    REQUESTED = "requested"
    RUNNING = "running"
    UNDOING = "undoing"
    STUCK = "stuck"
    DONE = "done"
    FAILED = "failed"


TRANSITIONS: dict[SagaState, frozenset[SagaState]] = {
    SagaState.PROPOSED: frozenset({SagaState.REQUESTED, SagaState.REFUSED}),
    SagaState.REFUSED: frozenset(),
    # Straight to undoing: cancelled before it began.
    SagaState.REQUESTED: frozenset({SagaState.RUNNING, SagaState.UNDOING, SagaState.FAILED}),
    SagaState.RUNNING: frozenset({SagaState.UNDOING, SagaState.STUCK, SagaState.DONE}),
    # Running again: the saga had passed its pivot after all.
    SagaState.UNDOING: frozenset({SagaState.STUCK, SagaState.FAILED, SagaState.RUNNING}),
    SagaState.STUCK: frozenset({SagaState.RUNNING, SagaState.UNDOING}),
    SagaState.DONE: frozenset(),
    SagaState.FAILED: frozenset(),
}

# States of sagas that are not run: the request is not accepted yet, or was refused.
NOT_ACCEPTED = frozenset({SagaState.PROPOSED, SagaState.REFUSED})
ENDED = frozenset({SagaState.DONE, SagaState.FAILED})
# States in which a saga may be cancelled before its pivot.
CANCELLABLE = (SagaState.REQUESTED, SagaState.RUNNING, SagaState.UNDOING, SagaState.STUCK)


class StepPhase(StrEnum):
    DO = "do"
    UNDO = "undo"


class StepState(StrEnum):
    STARTED = "started"
    DONE = "done"
    FAILED = "failed"


@dataclass
class StepEvent:
    """A named part of a step, with all its attempts on one host.

    ``start_time``: of the first attempt; ``finish_time``, ``result`` ("Success" or "Error") and ``details``: of the last one.
    """

    event: str
    start_time: datetime | None = None
    finish_time: datetime | None = None
    result: str | None = None
    traceback: str | None = None
    host: str | None = None
    details: str | None = None
    attempts: int = 1
    first_details: str | None = None


# In less time than this, no rate can be computed.
_SECONDS_OF_RATE = 1.0


@dataclass
class StepRecord:
    """A step's do or undo with all its attempts: times from the first to the last, the first error and the last."""

    step: str
    phase: StepPhase
    sequence: int
    state: StepState = StepState.STARTED
    attempt: int = 1
    epoch: int = 1
    host: str | None = None
    bytes_done: int | None = None
    bytes_total: int | None = None
    # Of a step that transfers in rounds: the round, and when it began; None if with the attempt.
    round: int | None = None
    bytes_since: datetime | None = None
    error: dict[str, Any] | None = None
    first_error: dict[str, Any] | None = None
    events: list[StepEvent] | None = None
    started_at: datetime | None = None
    # When the last attempt began.
    tried_at: datetime | None = None
    ended_at: datetime | None = None

    @property
    def seconds(self) -> float | None:
        """How long the last attempt took; None while it is running."""
        began = self.tried_at or self.started_at
        return None if began is None or self.ended_at is None else (self.ended_at - began).total_seconds()

    @property
    def percent(self) -> int | None:
        return percent(self.bytes_done, self.bytes_total)

    def end_events(self, now: datetime) -> None:
        """Ends events that an interrupted attempt left open, if the step has ended without them or is not tried again."""
        for event in self.events or ():
            if event.finish_time is None:
                event.finish_time = now
                event.result = "Success" if self.state is StepState.DONE else "Error"

    def show(self, done: int | None, total: int | None) -> None:
        """Sets the reported progress of a transfer (None: no report), unless the step has its final numbers."""
        if self.state is StepState.STARTED and self.bytes_done is None:
            self.bytes_done, self.bytes_total = done, total

    def seconds_left(self, now: datetime) -> int | None:
        """Seconds until all bytes are transferred, at the rate so far; None if unknown, or the step has ended."""
        since = self.bytes_since or self.tried_at or self.started_at
        return None if self.ended_at else seconds_left(self.bytes_done, self.bytes_total, since, now)


def seconds_left(done: int | None, total: int | None, since: datetime | None, now: datetime) -> int | None:
    """Seconds until ``total`` bytes are done at the rate since ``since``; None if unknown."""
    if not done or total is None or since is None or (seconds := (now - since).total_seconds()) < _SECONDS_OF_RATE:
        return None
    return round(seconds * max(0, total - done) / done)


def percent(done: int | None, total: int | None) -> int | None:
    """Per cent of ``total`` bytes that are done; None if the total is 0 or unknown."""
    return 100 * (done or 0) // total if total else None


@dataclass(kw_only=True)
class Saga:
    """A run of a recipe. ``data`` is the recipe's memory.

    ``owner``: a life of a process (see `causeway.sagas.lives`). Times are from the database's clock, except ``ended_at`` and
    ``failing_since``, when the present step first failed. ``recipe_version``: of the recipe with which it began, None before
    that; ``memory_version``: the format of ``data``. ``parked``: the knowledge of the release that could not run it, and why (see
    `causeway.sagas.versions`).
    """

    id: str
    recipe: str
    state: SagaState = SagaState.REQUESTED
    epoch: int = 1
    owner: str | None = None
    lease_until: datetime | None = None
    pivoted: bool = False
    cancel_requested: bool = False
    data: dict[str, Any] = field(default_factory=dict)
    request_id: str | None = None
    user_id: str | None = None
    project_id: str | None = None
    reason: str | None = None
    error: dict[str, Any] | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    recipe_version: int | None = None
    memory_version: int = 1
    parked: str | None = None
    failing_since: datetime | None = None

    @property
    def owner_host(self) -> str | None:
        """The host of the process that owns the saga, or owned it last."""
        return None if self.owner is None else self.owner.rpartition("/")[0]

    @property
    def waits_until(self) -> datetime | None:
        """When the failed step is retried; None if the saga does not wait for a retry."""
        waits = self.state is SagaState.RUNNING and self.owner is None and self.error is not None
        return self.lease_until if waits else None
