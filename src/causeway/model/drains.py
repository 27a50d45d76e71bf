"""Drains move many servers away from somewhere. This module has their records, and the transitions of their states.

A *drain* has a row for each of its *servers*::

    planned ──▶ running ◀──▶ paused          planned: nothing moves before it is started
                 │   │          │
                 │   ▼          ▼
                 │  cancelling ──▶ cancelled             what is under way ends, or is undone
                 ▼
                done ──▶ rolling_back ──▶ rolled_back    what is not confirmed is reverted

A drain pauses by itself, with the reason in ``note``, after as many failures as its request allows.
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
# No conductor works on a drain in these states.
AT_REST = frozenset({DrainState.PLANNED, DrainState.CANCELLED, DrainState.ROLLED_BACK, DrainState.DONE})


# Begins the ``why`` of a server whose owner asked to wait.
ON_HOLD = "Its owner asked to wait until"

_CLOSED = re.compile(r"Drain ([0-9a-f-]{36}) empties it\.")


def reason_of(drain_id: str) -> str:
    """The reason in the record of a host that a drain closed."""
    return f"Drain {drain_id} empties it."


def drain_of(reason: str | None) -> str | None:
    """The id of the drain that closed a host for this reason; None if no drain did."""
    found = _CLOSED.fullmatch(reason or "")
    return found[1] if found is not None else None


class DrainServerState(StrEnum):
    """``blocked``: the server can't go now, and ``why`` says why. A running drain looks again.

    ``asked``: its move was requested, or is about to be; the journal knows, by the request's id. ``moved``: it has arrived and
    waits for its confirm. ``passed_over``: it was deleted, or its user moved it meanwhile.
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


# Nothing more is done with servers in these states.
OVER = frozenset(
    {
        DrainServerState.DONE,
        DrainServerState.FAILED,
        DrainServerState.PASSED_OVER,
        DrainServerState.REVERTED,
    }
)


# A request for the server has not ended.
IN_WORK = frozenset({DrainServerState.ASKED, DrainServerState.CONFIRMING, DrainServerState.REVERTING})
# The server has arrived.
ARRIVED = frozenset({DrainServerState.MOVED, DrainServerState.CONFIRMING, DrainServerState.DONE})


class How(StrEnum):
    """How a server is moved. ``gentlest``: the first of the next four ways that works for the server.

    ``records``: only its records, since it is on no host. ``evacuate``: its host is dead, and its disks are volumes: its records
    move, and its guest is made anew at the target.
    """

    GENTLEST = "gentlest"
    LIVE = "live"
    NEAR_LIVE = "near_live"
    WARM = "warm"
    COLD = "cold"
    RECORDS = "records"
    EVACUATE = "evacuate"


# The ways that may be requested. The others follow from the server's state.
TO_CHOOSE = (How.GENTLEST, How.LIVE, How.NEAR_LIVE, How.WARM, How.COLD)


class First(StrEnum):
    """The order of servers by the size of their disks and memory."""

    LARGEST = "largest"
    SMALLEST = "smallest"


class Afterwards(StrEnum):
    """Who confirms moves: the drain at once, the drain after some hours, or the servers' owners."""

    CONFIRM = "confirm"
    CONFIRM_LATER = "confirm_later"
    OWNERS = "owners"


@dataclass(frozen=True)
class Scope:
    """Which servers to move: those in any of these. Cells, aggregates and zones by name, projects and servers by id."""

    cells: list[str] = field(default_factory=list)
    hosts: list[str] = field(default_factory=list)
    aggregates: list[str] = field(default_factory=list)
    zones: list[str] = field(default_factory=list)
    projects: list[str] = field(default_factory=list)
    servers: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Targets:
    """Where to move them: to any of these; if none is named, to any host outside of the scope."""

    cells: list[str] = field(default_factory=list)
    hosts: list[str] = field(default_factory=list)
    aggregates: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Limits:
    """Moves at once, in all and for each source host, target host and pair of cells; None to find it (`drains.climbing`).

    ``bytes_per_second``: for all disks and memories together that travel while their guests run; None for no limit.
    """

    total: int | None = None
    per_source_host: int | None = None
    per_target_host: int | None = None
    per_cell_pair: int | None = None
    bytes_per_second: int | None = None

    def planned(self) -> Limits:
        """These limits, with first values for those that the drain finds itself."""
        return replace(self, **{name: most for name, most in FIRST_LIMITS.items() if getattr(self, name) is None})


# The first values of limits that are not set. Plans use them too.
FIRST_LIMITS = {"total": 20, "per_source_host": 2, "per_target_host": 2, "per_cell_pair": 10}


@dataclass
class Climb:
    """The limit of moves at once that was found for a resource.

    ``raised_from``: the limit before the last raise, while its effect is unknown; ``rate``: bytes a second before that raise.
    ``rest``: decisions until the next raise. ``bytes`` in ``seconds``: carried since the last decision.
    """

    limit: int
    rate: float = 0.0
    raised_from: int | None = None
    rest: int = 0
    bytes: int = 0
    seconds: float = 0.0


@dataclass
class Pacing:
    """Measurements of a running drain. ``at``: when, in seconds since the epoch; ``rate``: bytes a second of all moves.

    ``sent``: request's id -> bytes that its move had sent by then. ``climbs``: by the names of resources (`drains.pace`).
    """

    at: float = 0.0
    rate: float = 0.0
    sent: dict[str, int] = field(default_factory=dict)
    climbs: dict[str, Climb] = field(default_factory=dict)


@dataclass(frozen=True)
class Window:
    """When moves may begin. ``days``: 0 is Monday; ``start`` and ``end``: "HH:MM", in ``zone``.

    If ``end`` is not after ``start``, it is on the next day.
    """

    days: list[int]
    start: str
    end: str
    zone: str = "UTC"


@dataclass(frozen=True)
class DrainRequest:
    """An administrator's request for a drain.

    ``flavors``: name of a server's flavor -> name of its new flavor; other servers keep theirs. ``confirm_after``: hours, for
    `Afterwards.CONFIRM_LATER`. ``retries``: of each server's move; ``stop_after``: failures after which the drain pauses; 0 for
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
    """``closed``: hosts that the drain closed.

    ``note``: why it waits, or paused by itself. Times are from the database's clock.
    """

    id: str
    request: DrainRequest
    state: DrainState = DrainState.PLANNED
    closed: list[str] = field(default_factory=list)
    note: str | None = None
    #: when cancelled: undo moves under way, if that is still possible
    undo: bool = False
    #: None before the first measurement
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
    """A server of a drain, with its plan and its outcome. Cells by name.

    ``bytes``: of its local disks, as its flavor has them; what its last move sent, once it has arrived. ``seconds``: the
    estimate for its move; ``pause``: the planned seconds in which its guest stands still or is off; ``took`` and ``stood_still``:
    the real values of its last move, if known. ``why``: why it can't go; ``help``: what would help. ``request_id``: of its last
    requested move. ``not_before``: when it is tried again after a failure, or until when its owner asked to wait.
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


class Delay(StrEnum):
    """What the end of a drain waits for, if not only for its moves."""

    HOLD = "hold"
    WINDOW = "window"


@dataclass
class DrainProgress:
    """``servers``: state -> their number. Bytes: of all servers, and of those that have arrived.

    ``seconds_left``: of the moves that have not ended, one after the other, as planned. ``held``: servers that wait because their
    owners asked for it, and ``held_until``: the last of them; ``held_seconds``: what the longest of their moves takes.
    ``ends_at``: the estimate for the end (`causeway.drains.ends`), None if it is unknown; ``delayed_by``: what it waits for.
    """

    servers: dict[DrainServerState, int] = field(default_factory=dict)
    bytes_total: int = 0
    bytes_done: int = 0
    seconds_left: float = 0.0
    held: int = 0
    held_until: datetime | None = None
    held_seconds: float = 0.0
    ends_at: datetime | None = None
    delayed_by: Delay | None = None
    meets_deadline: bool | None = None


@dataclass
class Shortage:
    """What targets lack. ``sentence`` has everything ("cell2 lacks 120 GiB of memory for 14 servers")."""

    where: str
    resource: str
    missing: int
    servers: int
    sentence: str


@dataclass
class Plan:
    """What a drain would do. ``ends_at``: if it began at ``began_at``; None if it would never end.

    ``bound``: the resource that limits its speed; ``doubled``: seconds if there were twice as much of it.
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
    """Formats seconds for people: "1 h 20 min"."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    days, hours = divmod(hours, 24)
    return " ".join(f"{number} {unit}" for number, unit in ((days, "d"), (hours, "h"), (minutes, "min")) if number)
