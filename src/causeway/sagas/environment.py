"""The parts that an engine needs: its journal, options, clock and observer, and the identity of its process."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Generic, Protocol

from causeway.sagas.clock import Clock
from causeway.sagas.journal import Journal, S
from causeway.sagas.lives import Life
from causeway.sagas.observer import Observer


class Options(Protocol):
    """The options of an engine, which reads them anew whenever it needs them. All except the counts are in seconds."""

    #: the length of a lease: an owner that does not renew its lease in this time loses the saga
    lease: float
    #: for how long a running saga waits for an unreachable journal
    journal_patience: float
    #: for how long a step that fails for a passing reason is retried
    patience: float
    #: the time between two attempts of a stuck saga; also the longest pause of a waiting one
    stuck_retry_interval: float
    #: the pause before the second attempt of a step; it doubles with each attempt
    first_pause: float
    #: attempts of a step that must succeed before its saga is stuck, and of one that failed unexpectedly
    attempts: int
    #: threads for sagas; a saga that waits for something long holds none
    workers: int
    #: running sagas of one process; others wait for their turn
    at_once: int


@dataclass
class Environment(Generic[S]):
    """``life``: this process as an owner in the journal. ``stopping``: set when the process must stop."""

    journal: Journal[S]
    life: Life
    options: Options
    stopping: threading.Event
    clock: Clock = field(default_factory=Clock)
    observer: Observer = field(default_factory=Observer)
