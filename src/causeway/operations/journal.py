"""The journal of operations, as an implementation of the engine's interface."""

from __future__ import annotations

from collections.abc import Iterable, Set
from math import ceil

from causeway.model.operations import Operation
from causeway.model.sagas import SagaState, StepRecord
from causeway.sagas.journal import Write
from causeway.store.api import journal, recording, wanted_operations
from causeway.store.database import Database


class OperationJournal:
    """``lease``: the length of a lease in seconds."""

    def __init__(self, api: Database, lease: float) -> None:
        self._api = api
        # Connections of its own: other statements, locks or a full pool can't delay a renewal, and one that hangs ends in time.
        url = api.url.render_as_string(hide_password=False)
        self._leases = Database(url, api.name, answer_timeout=max(1, ceil(lease / 3)))

    def acquire(self, saga_id: str, owner: str, lease: float, *, former: Set[str]) -> Operation | None:
        return journal.acquire(self._api, saga_id, owner, lease, former=former, by_first_write=True)

    def begin(self, saga: Operation, *, started: StepRecord, lease: float, also: Write | None) -> None:
        recording.begin(self._api, saga, started=started, lease=lease, also=also)

    def renew(self, owner: str, saga_ids: list[str], lease: float) -> None:
        journal.renew(self._leases, owner, saga_ids, lease)

    def get(self, saga_id: str) -> Operation:
        return journal.get(self._api, saga_id)

    def states(self, saga_ids: Iterable[str]) -> dict[str, SagaState]:
        return journal.states(self._api, saga_ids)

    def steps(self, saga_id: str) -> list[StepRecord]:
        return journal.steps(self._api, saga_id)

    def record(
        self,
        saga: Operation,
        *,
        ended: StepRecord | None,
        started: StepRecord | None,
        unless_cancelled: bool,
        takes: bool,
        lease: float,
        also: Write | None,
    ) -> None:
        recording.record(
            self._api,
            saga,
            ended=ended,
            started=started,
            unless_cancelled=unless_cancelled,
            takes=takes,
            lease=lease,
            also=also,
        )

    def is_recorded(self, saga: Operation, *, ended: StepRecord | None, started: StepRecord | None) -> bool:
        return recording.is_recorded(self._api, saga, ended=ended, started=started)

    def check_wanted(self, saga: Operation) -> None:
        wanted_operations.check_wanted(self._api, saga)

    def abandoned(self, mine: Set[str], lease: float, *, at_work: Set[str], knowledge: str) -> list[Operation]:
        return journal.abandoned(self._api, mine, lease, at_work=at_work, knowledge=knowledge)

    def park(self, saga: Operation, parked: str) -> None:
        journal.park(self._api, saga, parked)

    def close(self) -> None:
        self._leases.close()
