"""The journal of moves: what a move is, its states, and which may follow which.

A *move* is one run of a recipe (``cross_cell_resize``, ``cross_cell_confirm``, ...) for a migration. Its steps are written
down before they act and completed after. States of a move::

    proposed ──▶ refused      the request is not accepted yet; nobody runs it. Refused: it never will be
       │
       ▼
    requested ──▶ running ──▶ done
                  │    │ ▲
                  ▼    ▼ │
              undoing  stuck        stuck: goes on by itself when its cause is gone
                  │ ▲
                  ▼ │
                stuck, failed       failed: everything was undone, the move was rolled back

A running move *waits* while nobody works on it until ``lease_until``: a step failed for a passing reason (``error``), and is done
again then.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from causeway.model.instance import ActionEvent


class MoveState(StrEnum):
    PROPOSED = "proposed"
    REFUSED = "refused"
    REQUESTED = "requested"
    RUNNING = "running"
    UNDOING = "undoing"
    STUCK = "stuck"
    DONE = "done"
    FAILED = "failed"


MOVE_TRANSITIONS: dict[MoveState, frozenset[MoveState]] = {
    MoveState.PROPOSED: frozenset({MoveState.REQUESTED, MoveState.REFUSED}),
    MoveState.REFUSED: frozenset(),
    # Straight to undoing: cancelled before it began.
    MoveState.REQUESTED: frozenset({MoveState.RUNNING, MoveState.UNDOING, MoveState.FAILED}),
    MoveState.RUNNING: frozenset({MoveState.UNDOING, MoveState.STUCK, MoveState.DONE}),
    MoveState.UNDOING: frozenset({MoveState.STUCK, MoveState.FAILED}),
    MoveState.STUCK: frozenset({MoveState.RUNNING, MoveState.UNDOING}),
    MoveState.DONE: frozenset(),
    MoveState.FAILED: frozenset(),
}

# Nobody runs these: the request is not accepted yet, or never will be (see `causeway.moves.acceptance`).
MOVE_NOT_ACCEPTED = frozenset({MoveState.PROPOSED, MoveState.REFUSED})
MOVE_ENDED = frozenset({MoveState.DONE, MoveState.FAILED})


class StepPhase(StrEnum):
    DO = "do"
    UNDO = "undo"


class StepState(StrEnum):
    STARTED = "started"
    DONE = "done"
    FAILED = "failed"


@dataclass
class StepEvent(ActionEvent):
    """An event of the server's action that a step made, with all its attempts on one host.

    ``start_time`` is the first one's, ``finish_time``, ``result`` and ``details`` are the last one's.
    """

    attempts: int = 1
    first_details: str | None = None


@dataclass
class MoveStep:
    """A step's do or undo, with its attempts in a row: times from the first to the last, the first error and the last."""

    step: str
    phase: StepPhase
    sequence: int
    state: StepState = StepState.STARTED
    attempt: int = 1
    epoch: int = 1
    host: str | None = None
    bytes_done: int | None = None
    bytes_total: int | None = None
    error: dict[str, Any] | None = None
    first_error: dict[str, Any] | None = None
    # None: written by a version that kept them in the move's memory.
    events: list[StepEvent] | None = None
    started_at: datetime | None = None
    # When the last attempt began.
    tried_at: datetime | None = None
    ended_at: datetime | None = None

    @property
    def seconds(self) -> float | None:
        """How long the last attempt took; None while it goes on."""
        began = self.tried_at or self.started_at
        return None if began is None or self.ended_at is None else (self.ended_at - began).total_seconds()


@dataclass
class Move:
    """A run of a recipe. ``data`` is the recipe's memory (see `causeway.moves.memory.MoveMemory`).

    ``owner`` is a life of a conductor (see `causeway.conductor.lives`). Times are the database's, but for ``ended_at`` and
    ``failing_since``: when the present step failed first. ``recipe_version``: that of the recipe by which it was begun;
    ``memory_version``: how ``data`` is to be read. None: what releases wrote that did not count them, as 1. ``parked``: what the
    release knew that could not run it, and why (see `causeway.moves.versions`).
    """

    id: str
    migration_uuid: str
    instance_uuid: str
    recipe: str
    state: MoveState = MoveState.REQUESTED
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
    memory_version: int | None = None
    parked: str | None = None
    failing_since: datetime | None = None

    @property
    def owner_host(self) -> str | None:
        """The `host` of the conductor that has it, or had it last."""
        return None if self.owner is None else self.owner.rpartition("/")[0]

    @property
    def waits_until(self) -> datetime | None:
        """When the step that failed is done again; None if the move does not wait for that."""
        waits = self.state is MoveState.RUNNING and self.owner is None and self.error is not None
        return self.lease_until if waits else None
