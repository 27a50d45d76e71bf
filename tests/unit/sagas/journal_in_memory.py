"""A journal in memory: what `causeway.store.api.journal` does, with rows in a dictionary and the time of a clock."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Set
from dataclasses import replace
from datetime import timedelta

from causeway import errors
from causeway.model.sagas import ENDED, NOT_ACCEPTED, TRANSITIONS, Saga, SagaState, StepRecord
from causeway.sagas.clock import Clock
from causeway.sagas.journal import Write


class JournalInMemory:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.sagas: dict[str, Saga] = {}
        self.rows: dict[str, dict[int, StepRecord]] = {}
        # The owner's own: with each write they are written as they are by then.
        self._at_hand: dict[str, dict[int, StepRecord]] = {}

    def insert(self, saga_id: str, recipe: str) -> None:
        saga = Saga(id=saga_id, recipe=recipe, started_at=self._clock.now())
        self.sagas[saga.id], self.rows[saga.id] = saga, {}

    def _is_over(self, saga: Saga) -> bool:
        return saga.lease_until is None or saga.lease_until < self._clock.now()

    def acquire(self, saga_id: str, owner: str, lease: float, *, former: Set[str]) -> Saga | None:
        saga = self.sagas.get(saga_id)
        if saga is None:
            return None
        unowned = saga.state is not SagaState.STUCK and saga.owner in (None, owner, *former)
        if saga.state in ENDED | NOT_ACCEPTED or not (unowned or self._is_over(saga)):
            return None
        self._at_hand[saga_id] = {}
        if saga.state is SagaState.REQUESTED:
            return replace(copy.deepcopy(saga), owner=owner, epoch=saga.epoch + 1)
        saga.owner, saga.epoch = owner, saga.epoch + 1
        saga.lease_until = self._clock.now() + timedelta(seconds=lease)
        return copy.deepcopy(saga)

    def begin(self, saga: Saga, *, started: StepRecord, lease: float, also: Write | None) -> None:
        if saga.id in self.sagas:
            raise errors.TakenOver("somebody else has it")
        if also is not None:
            also(None)
        until = self._clock.now() + timedelta(seconds=lease)
        self.sagas[saga.id] = replace(copy.deepcopy(saga), started_at=self._clock.now(), lease_until=until)
        self._at_hand[saga.id] = {started.sequence: started}
        self.rows[saga.id] = copy.deepcopy(self._at_hand[saga.id])

    def renew(self, owner: str, saga_ids: list[str], lease: float) -> None:
        for saga_id in saga_ids:
            if self.sagas[saga_id].owner == owner:
                self.sagas[saga_id].lease_until = self._clock.now() + timedelta(seconds=lease)

    def get(self, saga_id: str) -> Saga:
        if saga_id not in self.sagas:
            raise errors.NotFound(f"Saga {saga_id} could not be found.")
        return copy.deepcopy(self.sagas[saga_id])

    def states(self, saga_ids: Iterable[str]) -> dict[str, SagaState]:
        return {saga_id: self.sagas[saga_id].state for saga_id in saga_ids if saga_id in self.sagas}

    def steps(self, saga_id: str) -> list[StepRecord]:
        return [copy.deepcopy(row) for _number, row in sorted(self.rows[saga_id].items())]

    def record(
        self,
        saga: Saga,
        *,
        ended: StepRecord | None,
        started: StepRecord | None,
        unless_cancelled: bool,
        takes: bool,
        lease: float,
        also: Write | None,
    ) -> None:
        known = self.sagas[saga.id]
        allowed = saga.state is known.state or saga.state in TRANSITIONS[known.state]
        if takes:
            allowed = known.state is SagaState.REQUESTED
        if known.epoch != saga.epoch - takes or not allowed or (known.pivoted and not saga.pivoted):
            raise errors.TakenOver("somebody else has it")
        if unless_cancelled and known.cancel_requested:
            raise errors.Cancelled("its user asked for it")
        if also is not None:
            also(None)
        until = self._clock.now() + timedelta(seconds=lease)
        self.sagas[saga.id] = replace(copy.deepcopy(saga), cancel_requested=known.cancel_requested, lease_until=until)
        self._at_hand[saga.id] |= {row.sequence: row for row in (ended, started) if row is not None}
        self.rows[saga.id] |= copy.deepcopy(self._at_hand[saga.id])

    def is_recorded(self, saga: Saga, *, ended: StepRecord | None, started: StepRecord | None) -> bool:
        known = self.sagas.get(saga.id)
        if known is None:
            return False
        if (known.epoch, known.state, known.pivoted, known.owner) != (saga.epoch, saga.state, saga.pivoted, saga.owner):
            return False
        found = {number: (row.state, row.attempt) for number, row in self.rows[saga.id].items()}
        rows = [row for row in (ended, started) if row is not None]
        return known.data == saga.data and all(found.get(row.sequence) == (row.state, row.attempt) for row in rows)

    def check_wanted(self, saga: Saga) -> None:
        known = self.sagas[saga.id]
        if known.epoch > saga.epoch:
            raise errors.TakenOver("somebody else has it")
        if known.cancel_requested and not known.pivoted:
            raise errors.Cancelled("its user asked for it")

    def abandoned(self, mine: Set[str], lease: float, *, at_work: Set[str], knowledge: str) -> list[Saga]:  # noqa: ARG002
        found = (saga for saga in self.sagas.values() if saga.id not in at_work and saga.state not in ENDED)
        return [self.get(saga.id) for saga in found if self._is_over(saga) or saga.owner in mine]

    def park(self, saga: Saga, parked: str) -> None:
        known = self.sagas[saga.id]
        known.owner, known.parked, known.state = None, parked, SagaState.STUCK

    def close(self) -> None:
        pass

    def request_cancel(self, saga_id: str) -> bool:
        saga = self.sagas[saga_id]
        if saga.pivoted or saga.state in ENDED | NOT_ACCEPTED:
            return False
        saga.cancel_requested = True
        return True
