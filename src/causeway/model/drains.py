"""Drains: many servers are moved away from somewhere. What exists of one, and which state may follow which.

A *drain* has a row for each of its *servers*::

    planned ──▶ running ◀──▶ paused          planned: nothing moves before it is started
                 │   │          │
                 │   ▼          ▼
                 │  cancelling ──▶ cancelled             what is under way ends, or is undone
                 ▼
                done ──▶ rolling_back ──▶ rolled_back    what is not confirmed is reverted

It pauses by itself, with the reason in ``note``, after as many failures as its request allows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum


class DrainState(StrEnum):
    PLANNED = "planned"
    RUNNING = "running"
    PAUSED = "paused"
    CANCELLING = "cancelling"
    CANCELLED = "cancelled"
    ROLLING_BACK = "rolling_back"
    ROLLED_BACK = "rolled_back"
    DONE = "done"


TRANSITIONS: dict[DrainState, frozenset[DrainState]] = {
    DrainState.PLANNED: frozenset({DrainState.RUNNING, DrainState.CANCELLED}),
    DrainState.RUNNING: frozenset({DrainState.PAUSED, DrainState.CANCELLING, DrainState.ROLLING_BACK, DrainState.DONE}),
    DrainState.PAUSED: frozenset({DrainState.RUNNING, DrainState.CANCELLING, DrainState.ROLLING_BACK}),
    DrainState.CANCELLING: frozenset({DrainState.CANCELLED, DrainState.ROLLING_BACK}),
    DrainState.CANCELLED: frozenset({DrainState.ROLLING_BACK}),
    DrainState.ROLLING_BACK: frozenset({DrainState.ROLLED_BACK}),
    DrainState.ROLLED_BACK: frozenset(),
    DrainState.DONE: frozenset({DrainState.ROLLING_BACK}),
}
# Nobody works on one in these.
AT_REST = frozenset({DrainState.PLANNED, DrainState.CANCELLED, DrainState.ROLLED_BACK, DrainState.DONE})


_CLOSED = re.compile(r"Drain ([0-9a-f-]{36}) empties it\.")


def reason_of(drain_id: str) -> str:
    """What the record of a host says that a drain closed."""
    return f"Drain {drain_id} empties it."


def drain_of(reason: str | None) -> str | None:
    """The id of the drain that closed a host for this reason; None: somebody else did."""
    found = _CLOSED.fullmatch(reason or "")
    return found[1] if found is not None else None


class DrainServerState(StrEnum):
    """``blocked``: it can't go, ``why`` says why; looked at again while the drain runs.

    ``asked``: its move was asked for, or is about to be: the journal knows, by the request's id. ``moved``: it is there and waits
    for its confirm. ``passed_over``: it was deleted, or its user moved it away meanwhile.
    """

    PENDING = "pending"
    BLOCKED = "blocked"
    ASKED = "asked"
    MOVED = "moved"
    CONFIRMING = "confirming"
    DONE = "done"
    FAILED = "failed"
    PASSED_OVER = "passed_over"
    REVERTING = "reverting"
    REVERTED = "reverted"


# Nothing more is done with them.
OVER = frozenset(
    {
        DrainServerState.DONE,
        DrainServerState.FAILED,
        DrainServerState.PASSED_OVER,
        DrainServerState.REVERTED,
    }
)


# Something was asked for, and has not come to its end.
IN_WORK = frozenset({DrainServerState.ASKED, DrainServerState.CONFIRMING, DrainServerState.REVERTING})
# They are where they were to come to.
ARRIVED = frozenset({DrainServerState.MOVED, DrainServerState.CONFIRMING, DrainServerState.DONE})


class How(StrEnum):
    """How a server is moved. ``gentlest``: of the next four, the first that works for it.

    ``records``: only its records, for it is on no host. ``evacuate``: its host is dead, and all of it is on volumes: its records
    go, and it is made anew at the target.
    """

    GENTLEST = "gentlest"
    LIVE = "live"
    NEAR_LIVE = "near_live"
    WARM = "warm"
    COLD = "cold"
    RECORDS = "records"
    EVACUATE = "evacuate"


# What may be asked for; the others follow from what a server is.
TO_CHOOSE = (How.GENTLEST, How.LIVE, How.NEAR_LIVE, How.WARM, How.COLD)


class First(StrEnum):
    """By what a server's disks and memory take to travel."""

    LARGEST = "largest"
    SMALLEST = "smallest"


class Afterwards(StrEnum):
    """Who confirms what waits for it: the drain at once, or after hours; or the servers' owners."""

    CONFIRM = "confirm"
    CONFIRM_LATER = "confirm_later"
    OWNERS = "owners"


@dataclass(frozen=True)
class Scope:
    """Whose servers: what any of these has. Cells, aggregates and zones by name, projects and servers by id."""

    cells: list[str] = field(default_factory=list)
    hosts: list[str] = field(default_factory=list)
    aggregates: list[str] = field(default_factory=list)
    zones: list[str] = field(default_factory=list)
    projects: list[str] = field(default_factory=list)
    servers: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Targets:
    """Where to: any of these. Nothing is named: wherever it fits outside of the scope."""

    cells: list[str] = field(default_factory=list)
    hosts: list[str] = field(default_factory=list)
    aggregates: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Limits:
    """Moves at once, in all and for each source host, target host and pair of cells; None: found out (`drains.climbing`).

    ``bytes_per_second``: of all disks and memories together that travel while their guests run; None: as fast as it goes.
    """

    total: int | None = None
    per_source_host: int | None = None
    per_target_host: int | None = None
    per_cell_pair: int | None = None
    bytes_per_second: int | None = None

    def planned(self) -> Limits:
        """With a number for each that is found out: what is begun with."""
        return replace(self, **{name: most for name, most in FIRST_LIMITS.items() if getattr(self, name) is None})


# What is begun with where nobody has set a limit, and what plans reckon with.
FIRST_LIMITS = {"total": 20, "per_source_host": 2, "per_target_host": 2, "per_cell_pair": 10}


@dataclass
class Climb:
    """How many moves at once a resource takes, as far as that was found out.

    ``raised_from``: the limit that was raised to this one, which has yet to show what it brings; ``rate``: bytes a second
    that came through before. ``rest``: decisions until the next raise. ``bytes`` in ``seconds``: since the last decision.
    """

    limit: int
    rate: float = 0.0
    raised_from: int | None = None
    rest: int = 0
    bytes: int = 0
    seconds: float = 0.0


@dataclass
class Pacing:
    """What was measured of a drain that runs. ``at``: when, in seconds of the epoch; ``rate``: bytes a second of all moves.

    ``sent``: request's id -> bytes that its move had sent by then. ``climbs``: by the names of resources (`drains.pace`).
    """

    at: float = 0.0
    rate: float = 0.0
    sent: dict[str, int] = field(default_factory=dict)
    climbs: dict[str, Climb] = field(default_factory=dict)


@dataclass(frozen=True)
class Window:
    """When moves may begin. ``days``: 0 is Monday; ``start`` and ``end``: "HH:MM", in ``zone``.

    An end that is not after its start is the next day's.
    """

    days: list[int]
    start: str
    end: str
    zone: str = "UTC"


@dataclass(frozen=True)
class DrainRequest:
    """What an administrator asks for.

    ``flavors``: a server's flavor -> the one it is resized to, by name; others are kept. ``confirm_after``: hours, for
    `Afterwards.CONFIRM_LATER`. ``retries``: of each server's move; ``stop_after``: failures after which the drain pauses, 0:
    never. ``first``: which servers go first among those that may go.
    """

    name: str
    scope: Scope
    targets: Targets = field(default_factory=Targets)
    how: How = How.GENTLEST
    flavors: dict[str, str] = field(default_factory=dict)
    windows: list[Window] = field(default_factory=list)
    deadline: datetime | None = None
    limits: Limits = field(default_factory=Limits)
    afterwards: Afterwards = Afterwards.CONFIRM
    confirm_after: float | None = None
    retries: int = 2
    stop_after: int = 0
    first: First = First.LARGEST
    reason: str | None = None


@dataclass(kw_only=True)
class Drain:
    """``closed``: hosts that it closed to new servers. ``note``: why it waits, or paused by itself. Times are the database's."""

    id: str
    request: DrainRequest
    state: DrainState = DrainState.PLANNED
    closed: list[str] = field(default_factory=list)
    note: str | None = None
    #: cancelled: what is under way is undone, where that is still possible
    undo: bool = False
    #: None: nothing was measured yet
    pacing: Pacing | None = None
    epoch: int = 0
    owner: str | None = None
    lease_until: datetime | None = None
    user_id: str | None = None
    project_id: str | None = None
    request_id: str | None = None
    created_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None

    @property
    def name(self) -> str:
        return self.request.name


@dataclass(kw_only=True)
class DrainServer:
    """A server of a drain, with its plan and what became of it. Cells by their names.

    ``bytes``: of its local disks; ``seconds``: that its move is estimated to take; ``pause``: seconds that its guest stands still
    or is off, by the plan; ``took`` and ``stood_still``: what these were of its last move, if that is known. ``why``: of one
    that can't go, and ``help`` what would help. ``request_id``: of the move that was asked for last. ``not_before``: it failed,
    and is tried again then; or its owner asked to wait.
    """

    drain_id: str
    instance_uuid: str
    state: DrainServerState = DrainServerState.PENDING
    name: str = ""
    owner_project: str = ""
    how: How | None = None
    source_cell: str = ""
    source_host: str = ""
    target_cell: str | None = None
    target_host: str | None = None
    flavor: str | None = None
    new_flavor: str | None = None
    bytes: int = 0
    memory_mb: int = 0
    seconds: float | None = None
    pause: float | None = None
    took: float | None = None
    stood_still: float | None = None
    why: str | None = None
    help: str | None = None
    request_id: str | None = None
    attempts: int = 0
    not_before: datetime | None = None
    began_at: datetime | None = None
    ended_at: datetime | None = None


@dataclass
class DrainProgress:
    """``servers``: state -> how many there are. Bytes: of the local disks of all of them, and of those that have arrived."""

    servers: dict[DrainServerState, int] = field(default_factory=dict)
    bytes_total: int = 0
    bytes_done: int = 0


@dataclass
class Shortage:
    """What targets lack: ``sentence`` says it all ("cell2 lacks 120 GiB of memory for 14 servers")."""

    where: str
    resource: str
    missing: int
    servers: int
    sentence: str


@dataclass
class Plan:
    """What a drain would do. ``ends_at``: if it began at ``began_at``; None: it would not come to an end.

    ``bound``: the resource that keeps it from going faster; ``doubled``: seconds if there were twice as much of that.
    """

    servers: list[DrainServer]
    began_at: datetime
    movable: int = 0
    blocked: int = 0
    bytes: int = 0
    seconds: float = 0.0
    ends_at: datetime | None = None
    meets_deadline: bool | None = None
    bound: str | None = None
    doubled: float | None = None
    fits: bool = True
    shortages: list[Shortage] = field(default_factory=list)
    summary: str = ""
    notes: list[str] = field(default_factory=list)


def duration(seconds: float) -> str:
    """Seconds as people say them: "1 h 20 min"."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    days, hours = divmod(hours, 24)
    return " ".join(f"{number} {unit}" for number, unit in ((days, "d"), (hours, "h"), (minutes, "min")) if number)
