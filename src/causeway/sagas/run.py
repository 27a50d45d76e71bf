"""A running saga, as its steps see it."""

from __future__ import annotations

import itertools
import logging
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Generic, TypeVar

import msgspec

from causeway import errors
from causeway.model.sagas import StepEvent, StepPhase, StepRecord
from causeway.sagas.environment import Environment
from causeway.sagas.journal import S, Write
from causeway.sagas.lease import Lease

LOG = logging.getLogger(__name__)

M = TypeVar("M")
T = TypeVar("T")

# The number of characters of a traceback that are recorded: its last ones.
LONGEST_TRACEBACK = 8000

# Seconds between two attempts to reach the journal's database: the first pause, which doubles each time, and the longest one.
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0


class Run(Generic[S, M]):
    """One saga that this process owns.

    ``memory`` is written to the journal with each step. A process that takes the saga over continues with this memory.
    """

    def __init__(self, environment: Environment[S], context: Any, saga: S, memory: M, *, asked_at: float) -> None:
        """``asked_at``: the clock's `boot` time just before the saga was acquired."""
        self.environment = environment
        self.context = context
        self.saga = saga
        self.memory = memory
        #: whether another process took the saga over and it has ended: this run only undoes what came too late, without a lease
        self.is_over = False
        #: whether the saga is not in the journal yet: the beginning of its first step writes it
        self.is_new = False
        #: whether no process has worked on the saga before: this run made everything that exists
        self.is_first = False
        #: whether the saga has no owner yet: the first write makes this process its owner, or finds that there is another one
        self.is_unowned = False
        #: the steps so far; the last one is the present one
        self.steps: list[StepRecord] = []
        self.step: StepRecord | None = None
        #: the present step, if it has joined the one before it and its beginning is not in the journal yet
        self.unwritten: StepRecord | None = None
        self._lease = Lease(environment.options.lease, environment.clock, asked_at)
        self._journal_patience = environment.options.journal_patience
        self._to_write: list[Write] = []
        self._pivot: Write | None = None

    def refresh(self) -> None:
        """Discards everything that was read, because it may have changed. Called before each attempt of a step."""

    # the lease

    def check_lease(self) -> None:
        """Raises TakenOver if another process owns the saga by now. Asks the journal only if that is possible.

        Steps call this before they change anything, since the process may have been suspended.
        """
        if self.is_over or self._lease.is_certain:
            return
        asked_at = self.environment.clock.boot()
        if self._patiently(self._renewed_epoch) != self.saga.epoch:
            raise errors.TakenOver(f"Another conductor has taken over saga {self.saga.id} and continues it.")
        self._lease.renewed(asked_at)

    def check_wanted(self) -> None:
        """Raises Cancelled, StateChanged or TakenOver if the saga is no longer wanted (see `Journal.check_wanted`)."""
        self._patiently(lambda _attempt: self.environment.journal.check_wanted(self.saga))

    def _renewed_epoch(self, _attempt: int) -> int:
        journal = self.environment.journal
        journal.renew(self.environment.life.owner, [self.saga.id], self._lease.seconds)
        return journal.get(self.saga.id).epoch

    # the present step

    @property
    def is_repeated(self) -> bool:
        """Whether the present step was attempted before, so that parts of what it makes may exist."""
        return self.step is not None and self.step.attempt > 1

    @property
    def is_undoing(self) -> bool:
        """Whether the present step is being undone."""
        return self.step is not None and self.step.phase is StepPhase.UNDO

    def transferred(self, size: int | None) -> None:
        """Notes that the present step has transferred all of its ``size`` bytes. Does nothing for None (unknown, or no bytes)."""
        if self.step is not None and size is not None:
            self.step.bytes_done = self.step.bytes_total = size

    def in_round(self, number: int | None) -> None:
        """Notes that the present step begins this round (None: no round). The bytes of the round are counted from 0."""
        if self.step is not None:
            clock = self.environment.clock
            self.step.round, self.step.bytes_since = number, clock.now() + clock.skipped()
            self.step.bytes_done = self.step.bytes_total = None

    @contextmanager
    def event(self, name: str, host: str | None = None) -> Iterator[None]:
        """Encloses a part of the present step, and records it as an event with its times and result.

        ``host``: where it happens; None for this process's host. If the part is repeated, its event counts the attempts.
        """
        event = self._event(name, host or self.environment.life.host)
        try:
            yield
        except Exception as failure:
            event.result = "Error"
            event.details = failure.message if isinstance(failure, errors.CausewayError) else type(failure).__name__
            event.first_details = event.first_details or event.details
            event.traceback = _end_of(traceback.format_exc())
            raise
        else:
            event.result, event.details, event.traceback = "Success", None, None
        finally:
            event.finish_time = self.environment.clock.now()

    def warn(self, name: str, host: str, failure: errors.CausewayError) -> None:
        """Records what the present step could not do, and does not fail for: as a failed event, and as the step's error."""
        with suppress(errors.CausewayError), self.event(name, host):
            raise failure
        if self.step is not None:
            self.step.error = failure.to_wire()

    def _event(self, name: str, host: str) -> StepEvent:
        if self.step is None:
            raise RuntimeError("only a step makes events")
        self.step.events = known = self.step.events or []
        for event in known:
            if (event.event, event.host) == (name, host):
                event.attempts += 1
                return event
        known.append(StepEvent(event=name, start_time=self.environment.clock.now(), host=host))
        return known[-1]

    # the journal

    def with_next_save(self, write: Write) -> None:
        """Adds a write to the transaction that ends this step. Nothing may depend on the write before that.

        If the step fails after this call, nothing is written: another attempt adds its own write.
        """
        self._to_write.append(write)

    def pivot_with_end(self, also: Write) -> None:
        """Makes the end of this step the pivot, in one transaction with what ``also`` writes.

        For a step that does nothing after its pivot.
        """
        if not self.saga.pivoted:
            self._pivot = also

    def discard_writes(self) -> None:
        """Cancels `with_next_save` and `pivot_with_end`, because the step has failed after these calls."""
        self._to_write = []
        self._pivot = None

    @property
    def has_writes(self) -> bool:
        """Whether the end of this step is written together with anything else."""
        return bool(self._to_write) or self.is_pivoting

    @property
    def is_pivoting(self) -> bool:
        """Whether the end of this step is the pivot."""
        return self._pivot is not None

    def save(
        self,
        *,
        ended: StepRecord | None = None,
        started: StepRecord | None = None,
        unless_cancelled: bool = False,
        pause: float = 0.0,
        also: Write | None = None,
    ) -> None:
        """Writes the saga with its memory. Raises TakenOver if another process owns it.

        ``pause``: seconds until a process may acquire a released saga.
        """
        saga, journal = self.saga, self.environment.journal
        if ended is None and started is None:
            started = self.unwritten
        saga.data = msgspec.to_builtins(self.memory)
        writes = [*self._to_write, *(write for write in (self._pivot, also) if write is not None)]
        if self._pivot is not None:
            saga.pivoted = unless_cancelled = True

        def write_all(connection: Any) -> None:
            for write in writes:
                write(connection)

        asked_at = self.environment.clock.boot()

        def record(attempt: int) -> None:
            # Maybe the last attempt took effect, and only its answer was lost.
            if attempt and journal.is_recorded(saga, ended=ended, started=started):
                return
            also = write_all if writes else None
            if self.is_new and started is not None:
                journal.begin(saga, started=started, lease=self._lease.seconds, also=also)
                return
            journal.record(
                saga,
                ended=ended,
                started=started,
                unless_cancelled=unless_cancelled,
                takes=self.is_unowned,
                lease=pause if saga.owner is None else self._lease.seconds,
                also=also,
            )

        try:
            self._patiently(record)
        except BaseException:
            saga.pivoted = saga.pivoted and self._pivot is None
            raise
        finally:
            self._pivot = None
        self.is_new = self.is_unowned = False
        self.unwritten = None
        self._to_write = []
        self._lease.renewed(asked_at)

    def pivot(self, also: Write | None = None) -> None:
        """Makes this moment the pivot, in one transaction with what ``also`` writes. Does nothing if the saga has pivoted."""
        if self.saga.pivoted:
            return
        self.saga.pivoted = True
        try:
            self.save(also=also, unless_cancelled=True)
        except BaseException:
            self.saga.pivoted = False
            raise

    def _patiently(self, work: Callable[[int], T]) -> T:
        """Calls ``work`` with the number of the attempt, and repeats the call while the journal's database is unavailable.

        Without the journal the saga can neither continue nor roll back. Raises DatabaseFailed if the database stays unavailable
        for too long (the option ``journal_patience``), or the process stops. The saga is then resumed from the journal later.
        """
        clock, pause = self.environment.clock, FIRST_PAUSE
        end = clock.boot() + self._journal_patience
        for attempt in itertools.count():
            try:
                return work(attempt)
            except errors.DatabaseFailed as failure:
                if clock.boot() + pause > end:
                    raise
                LOG.warning("Saga %s waits for its journal: %s", self.saga.id, failure.details)
                if clock.wait(self.environment.stopping, pause):
                    raise
            pause = min(2 * pause, LONGEST_PAUSE)
        raise AssertionError("count ended")


def _end_of(text: str) -> str:
    """Returns the end of a traceback, which says what happened."""
    return text if len(text) <= LONGEST_TRACEBACK else f"...\n{text[-LONGEST_TRACEBACK:]}"
