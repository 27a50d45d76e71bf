"""A move while it is being worked on: what its steps see."""

from __future__ import annotations

import itertools
import logging
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import msgspec
import sqlalchemy as sa

from causeway import errors
from causeway.conductor.services import ConductorServices
from causeway.context import RequestContext
from causeway.model.block_device import BlockDevice
from causeway.model.instance import ActionEvent, Instance
from causeway.model.moves import Move, MoveStep, StepEvent, StepPhase
from causeway.model.outcomes import MoveToken
from causeway.moves.memory import MoveMemory
from causeway.rpc.compute import ComputeClient
from causeway.store.api import journal
from causeway.store.cell import block_devices, instances
from causeway.store.database import Database, utcnow

LOG = logging.getLogger(__name__)

T = TypeVar("T")

# Seconds since the machine was started, those included in which it was suspended: leases run out meanwhile.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

# Characters of a traceback that are kept.
LONGEST_TRACEBACK = 8000

# Seconds between two looks whether the journal's database is back: at first, doubled each time, and at most.
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0

# The field's names of the event that covers all of a move.
_EVENTS = {
    "resize": "conductor_migrate_server",
    "cross_cell_resize": "conductor_migrate_server",
    "same_cell_resize": "conductor_migrate_server",
    "cross_cell_confirm": "conductor_confirm_snapshot_based_resize",
    "cross_cell_revert": "conductor_revert_snapshot_based_resize",
}
# Inside a cell the field's conductor has no part in these; their first step's event tells of a failure before it.
_FIRST_EVENTS = {"same_cell_confirm": "compute_confirm_resize", "same_cell_revert": "compute_revert_resize"}


def boot_clock() -> float:
    """Seconds by a clock that goes on while the machine is suspended."""
    return time.clock_gettime(_CLOCK)


class Run:
    """One move in the hands of one conductor."""

    def __init__(self, services: ConductorServices, context: RequestContext, move: Move, *, asked_at: float) -> None:
        """``asked_at``: the `boot_clock` when the move was asked for, before the journal gave it."""
        #: the same as ``services``, for who needs no hold of the move
        self.unguarded = services
        self._lease: float = services.conf.moves.lease
        self._patience: float = services.conf.moves.journal_patience
        self._is_sure_since(asked_at)
        self.context = context
        self.move = move
        self.memory = msgspec.convert(move.data, MoveMemory)
        #: what was done so far; the last one is at hand
        self.steps: list[MoveStep] = []
        self.step: MoveStep | None = None
        self._cache: dict[str, Any] = {}
        self._to_write: list[Callable[[sa.Connection], Any]] = []

    # whose the move is

    @property
    def services(self) -> ConductorServices:
        """What steps work with, for as long as the move is in this conductor's hands."""
        self.hold()
        return self.unguarded

    def hold(self) -> None:
        """Raises TakenOver if another conductor has the move by now; looks only if it could have.

        A conductor that was stopped for a while comes to this before it touches anything.
        """
        if boot_clock() < self._sure_until:
            return
        asked_at = boot_clock()
        if self._patiently(self._renewed_epoch) != self.move.epoch:
            raise errors.TakenOver(f"Move {self.move.id} was taken over by another conductor.")
        self._is_sure_since(asked_at)

    def check_wanted(self) -> None:
        """Raises MoveCancelled, StateChanged (the server is to be deleted) or TakenOver if nobody wants the move any more."""
        self._patiently(lambda _attempt: journal.check_wanted(self.unguarded.api, self.move))

    @property
    def is_repeated(self) -> bool:
        """Whether the present step was tried before: something of it may be there."""
        return self.step is not None and self.step.attempt > 1

    @property
    def is_undoing(self) -> bool:
        """Whether the present step is being undone."""
        return self.step is not None and self.step.phase is StepPhase.UNDO

    def _renewed_epoch(self, _attempt: int) -> int:
        journal.renew(self.unguarded.api, self.unguarded.life.owner, [self.move.id], self._lease)
        return journal.get(self.unguarded.api, self.move.id).epoch

    def _patiently(self, work: Callable[[int], T]) -> T:
        """``work`` with the journal, given the number of the attempt; again and again while its database is away.

        Nothing can be decided without the journal: neither to go on nor to go back. Raises DatabaseFailed when patience is
        at its end, or the conductor stops; the move is taken up again from what the journal says.
        """
        end, pause = time.monotonic() + self._patience, FIRST_PAUSE
        for attempt in itertools.count():
            try:
                return work(attempt)
            except errors.DatabaseFailed as failure:
                if time.monotonic() + pause > end:
                    raise
                LOG.warning("Move %s waits for its journal: %s", self.move.id, failure.details)
                if self.unguarded.stopping.wait(pause):
                    raise
            pause = min(2 * pause, LONGEST_PAUSE)
        raise AssertionError("count ended")

    def _is_sure_since(self, asked_at: float) -> None:
        # Nobody takes a move before its lease is over, and that began when it was asked for, not when the answer came.
        self._sure_until = asked_at + self._lease / 2

    # where things are

    @property
    def uuid(self) -> str:
        """The server's."""
        return self.move.instance_uuid

    @property
    def source_database(self) -> Database:
        return self.services.cells.database(self.memory.source_cell)

    @property
    def target_database(self) -> Database:
        return self.services.cells.database(self.memory.target_cell)

    @property
    def source_computes(self) -> ComputeClient:
        return self.services.computes(self.memory.source_cell)

    @property
    def target_computes(self) -> ComputeClient:
        return self.services.computes(self.memory.target_cell)

    def token(self, step: str) -> MoveToken:
        """Under whose orders a compute acts."""
        return MoveToken(self.move.id, self.move.migration_uuid, self.move.epoch, step)

    # records, read once for a run of steps that don't change them

    def source_instance(self) -> Instance:
        """The source cell's record of the server, without its tags."""
        if "source" not in self._cache:
            self._cache["source"] = instances.get(self.source_database, self.uuid, with_tags=False)
        found: Instance = self._cache["source"]
        return found

    def target_instance(self) -> Instance:
        """The target cell's record of the server, without its tags."""
        if "target" not in self._cache:
            self._cache["target"] = instances.get(self.target_database, self.uuid, with_tags=False)
        found: Instance = self._cache["target"]
        return found

    def source_devices(self) -> list[BlockDevice]:
        """The block devices in the source cell's records."""
        if "devices" not in self._cache:
            self._cache["devices"] = block_devices.of_instance(self.source_database, self.uuid)
        found: list[BlockDevice] = self._cache["devices"]
        return found

    def forget_records(self) -> None:
        """Whoever asks next sees the records as they are then."""
        self._cache.clear()

    # the journal

    def with_next_save(self, write: Callable[[sa.Connection], Any]) -> None:
        """Has something written in the transaction that writes the end of this step; for what nobody acts on before."""
        self._to_write.append(write)

    def save(
        self,
        *,
        ended: MoveStep | None = None,
        started: MoveStep | None = None,
        unless_cancelled: bool = False,
        pause: float = 0.0,
        also: Callable[[sa.Connection], Any] | None = None,
    ) -> None:
        """Writes the move with its memory; raises TakenOver if another conductor has.

        ``pause``: seconds that a move which was let go is left alone.
        """
        self.move.data = msgspec.to_builtins(self.memory)
        writes = [*self._to_write, also] if also is not None else self._to_write

        def write_all(connection: sa.Connection) -> None:
            for write in writes:
                write(connection)

        asked_at = boot_clock()

        def record(attempt: int) -> None:
            api, move = self.unguarded.api, self.move
            # The attempt before may have been carried out, and only its answer lost.
            if attempt and journal.is_recorded(api, move, ended=ended, started=started):
                return
            journal.record(
                api,
                move,
                ended=ended,
                started=started,
                unless_cancelled=unless_cancelled,
                lease=pause if move.owner is None else self._lease,
                also=write_all if writes else None,
            )

        self._patiently(record)
        self._to_write = []
        self._is_sure_since(asked_at)

    def pivot(self, also: Callable[[sa.Connection], Any] | None = None) -> None:
        """From here on the move only goes forward; one transaction with what ``also`` writes. Pivoted before: nothing."""
        if self.move.pivoted:
            return
        self.move.pivoted = True
        try:
            self.save(also=also, unless_cancelled=True)
        except BaseException:
            self.move.pivoted = False
            raise

    # the server's history

    def history(self, failure: errors.CausewayError | None = None) -> list[ActionEvent]:
        """The events of the server's action: the conductor's, which says how all of it ended, and those of the steps."""
        name = _EVENTS.get(self.move.recipe)
        of_steps = [*self.memory.events, *(event for step in self.steps for event in step.events or ())]
        if name is None:
            if failure is None or any(event.result == "Error" for event in of_steps):
                return of_steps
            name = _FIRST_EVENTS[self.move.recipe]
        whole = ActionEvent(
            event=name,
            start_time=self.move.started_at,
            finish_time=utcnow(),
            host=self.unguarded.host,
            result="Success" if failure is None else "Error",
            details=None if failure is None else failure.message,
        )
        return [whole, *of_steps]

    @contextmanager
    def event(self, name: str, host: str | None = None) -> Iterator[None]:
        """An event of the server's action, with its times and its result. One that is repeated is counted, not added."""
        event = self._event(name, host or self.unguarded.host)
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
            event.finish_time = utcnow()

    def _event(self, name: str, host: str) -> StepEvent:
        if self.step is None:
            raise RuntimeError("only a step makes events")
        self.step.events = known = self.step.events or []
        for event in known:
            if (event.event, event.host) == (name, host):
                event.attempts += 1
                return event
        known.append(StepEvent(event=name, start_time=utcnow(), host=host))
        return known[-1]


def _bounded(text: str) -> str:
    """The end of a traceback, where it says what happened."""
    return text if len(text) <= LONGEST_TRACEBACK else f"...\n{text[-LONGEST_TRACEBACK:]}"
