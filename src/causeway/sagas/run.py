"""A running saga, as its steps see it."""

from __future__ import annotations

import itertools
import logging
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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

# The last characters of a traceback, which are kept.
LONGEST_TRACEBACK = 8000

# Seconds between two checks whether the journal's database is back: the first pause, which doubles each time, and the longest.
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0


class Run(Generic[S, M]):
    """One saga that this process owns.

    ``memory`` is written with each step; a process that takes the saga over begins with it.
    """

    def __init__(self, environment: Environment[S], context: Any, saga: S, memory: M, *, asked_at: float) -> None:
        """``asked_at``: the clock's `boot` time just before the saga was acquired."""
        self.environment = environment
        self.context = context
        self.saga = saga
        self.memory = memory
        #: the saga was taken over and has ended; this run only undoes what came too late, and has no lease
        self.is_over = False
        #: not in the journal yet: the beginning of its first step writes it
        self.is_new = False
        #: nobody has worked on it before: everything that exists was made by this run
        self.is_first = False
        #: without an owner yet: the first write makes this process the owner, or finds another one
        self.is_untaken = False
        #: the steps so far; the last one is the present one
        self.steps: list[StepRecord] = []
        self.step: StepRecord | None = None
        self._lease = Lease(environment.options.lease, environment.clock, asked_at)
        self._journal_patience = environment.options.journal_patience
        self._to_write: list[Write] = []
        self._pivot: Write | None = None

    def refresh(self) -> None:
        """Called before each attempt of a step: discards what was read before, which may have changed."""

    # the lease

    def check_lease(self) -> None:
        """Raises TakenOver if another process owns the saga by now. Asks the journal only if that is possible.

        A process that was suspended reaches this check before it changes anything.
        """
        if self.is_over or self._lease.is_certain:
            return
        asked_at = self.environment.clock.boot()
        if self._patiently(self._renewed_epoch) != self.saga.epoch:
            raise errors.TakenOver(f"Saga {self.saga.id} was taken over by another conductor.")
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
        """Whether the present step was tried before, so that parts of it may be there."""
        return self.step is not None and self.step.attempt > 1

    @property
    def is_undoing(self) -> bool:
        """Whether the present step is being undone."""
        return self.step is not None and self.step.phase is StepPhase.UNDO

    def transferred(self, size: int | None) -> None:
        """Notes that the present step has moved ``size`` bytes, which are all of them; None if unknown or none."""
        if self.step is not None and size is not None:
            self.step.bytes_done = self.step.bytes_total = size

    def in_round(self, number: int | None) -> None:
        """Notes that the present step begins this round (None: no round). Its bytes count from 0."""
        if self.step is not None:
            clock = self.environment.clock
            self.step.round, self.step.bytes_since = number, clock.now() + clock.skipped()
            self.step.bytes_done = self.step.bytes_total = None

    @contextmanager
    def event(self, name: str, host: str | None = None) -> Iterator[None]:
        """Records a named part of the present step with its times and result. If it is repeated, it is counted, not added."""
        event = self._event(name, host or self.environment.life.host)
        try:
            yield
        except Exception as failure:
            event.result = "Error"
            event.details = failure.message if isinstance(failure, errors.CausewayError) else type(failure).__name__
            event.first_details = event.first_details or event.details
            event.traceback = _bounded(traceback.format_exc())
            raise
        else:
            event.result, event.details, event.traceback = "Success", None, None
        finally:
            event.finish_time = self.environment.clock.now()

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
        """Adds a write to the transaction that ends this step. Nothing may depend on it before."""
        self._to_write.append(write)

    def pivot_with_end(self, also: Write) -> None:
        """`pivot` in the transaction that ends this step: for a step that does nothing behind its pivot."""
        if not self.saga.pivoted:
            self._pivot = also

    def withhold_pivot(self) -> None:
        """Cancels `pivot_with_end`: the step failed after all."""
        self._pivot = None

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

        ``pause``: seconds until a released saga may be acquired.
        """
        saga, journal = self.saga, self.environment.journal
        saga.data = msgspec.to_builtins(self.memory)
        writes = [*self._to_write, *(write for write in (self._pivot, also) if write is not None)]
        if self._pivot is not None:
            saga.pivoted = unless_cancelled = True

        def write_all(connection: Any) -> None:
            for write in writes:
                write(connection)

        asked_at = self.environment.clock.boot()

        def record(attempt: int) -> None:
            # The last attempt may have taken effect, and only its answer was lost.
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
                takes=self.is_untaken,
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
        self.is_new = self.is_untaken = False
        self._to_write = []
        self._lease.renewed(asked_at)

    def pivot(self, also: Write | None = None) -> None:
        """Makes this the pivot, in one transaction with what ``also`` writes. Does nothing if the saga has pivoted already."""
        if self.saga.pivoted:
            return
        self.saga.pivoted = True
        try:
            self.save(also=also, unless_cancelled=True)
        except BaseException:
            self.saga.pivoted = False
            raise

    def _patiently(self, work: Callable[[int], T]) -> T:
        """Calls ``work`` with the number of the attempt, and again while the journal's database is unavailable.

        Without the journal the saga can neither continue nor roll back. Raises DatabaseFailed when the patience is over or the
        process stops; then the saga is resumed from the journal later.
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


def _bounded(text: str) -> str:
    """The end of a traceback, where it says what happened."""
    return text if len(text) <= LONGEST_TRACEBACK else f"...\n{text[-LONGEST_TRACEBACK:]}"
