"""What an engine works with."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Generic, Protocol

from causeway.sagas.clock import Clock
from causeway.sagas.journal import Journal, S
from causeway.sagas.lives import Life
from causeway.sagas.observer import Observer


class Options(Protocol):
    """Read anew whenever they are needed. All but the counts are seconds."""

    #: after which an owner that does not renew it loses its lease
    lease: float
    #: for which a run waits in its middle for the journal to come back
    journal_patience: float
    #: for which a step that fails for a passing reason is retried
    patience: float
    #: between two tries of a saga that is stuck; the longest pause of one that waits
    stuck_retry_interval: float
    #: before a step is tried again; doubled with each try
    first_pause: float
    #: tries of a step that must succeed before its saga is stuck, and of one that failed unexpectedly
    attempts: int
    #: threads for sagas; those that wait for what takes long hold none
    workers: int
    #: sagas that one process has begun and not ended; others wait for their turn
    at_once: int


@dataclass
class Environment(Generic[S]):
    """``life``: who this is in the journal. ``stopping``: set when the process is to stop."""

    journal: Journal[S]
    life: Life
    options: Options
    stopping: threading.Event
    clock: Clock = field(default_factory=Clock)
    observer: Observer = field(default_factory=Observer)
