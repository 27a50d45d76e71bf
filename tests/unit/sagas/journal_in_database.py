"""The real journal, of moves, in a database of its own; only when leases expire is said by a simulated clock."""

from __future__ import annotations

from typing import Any

from causeway.model.operations import Operation
from causeway.operations.journal import OperationJournal
from causeway.sagas.clock import Clock
from causeway.store.api import journal, wanted_operations
from causeway.store.clock import utc_now
from causeway.store.database import Database

HOUR = 3600.0


class JournalInDatabase(OperationJournal):
    def __init__(self, api: Database, clock: Clock) -> None:
        super().__init__(api, HOUR)
        self._clock = clock
        # move -> the clock's time at which its lease expires
        self._expires: dict[str, float] = {}
        with api.write() as connection:
            connection.execute(journal.OPERATIONS.delete())

    def insert(self, saga_id: str, recipe: str) -> None:
        with self._api.write() as connection:
            journal.insert_in(
                connection, Operation(id=saga_id, migration_uuid=saga_id, instance_uuid=saga_id, recipe=recipe)
            )

    def request_cancel(self, saga_id: str) -> bool:
        return wanted_operations.request_cancel(self._api, saga_id)

    def acquire(self, saga_id: str, owner: str, lease: float, **others: Any) -> Operation | None:
        self._expire()
        found = super().acquire(saga_id, owner, lease, **others)
        if found is not None:
            self._expires[saga_id] = self._clock.boot() + lease
        return found

    def renew(self, owner: str, saga_ids: list[str], lease: float) -> None:
        # On the connection of everybody else: here all of it is one thread's.
        journal.renew(self._api, owner, saga_ids, lease)
        for saga_id in saga_ids:
            if self.get(saga_id).owner == owner:
                self._expires[saga_id] = self._clock.boot() + lease

    def begin(self, saga: Operation, *, lease: float, **others: Any) -> None:
        super().begin(saga, lease=lease, **others)
        self._expires[saga.id] = self._clock.boot() + lease

    def record(self, saga: Operation, *, lease: float, **others: Any) -> None:
        super().record(saga, lease=lease, **others)
        self._expires[saga.id] = self._clock.boot() + lease

    def _expire(self) -> None:
        for saga_id, at in self._expires.items():
            left = HOUR if at >= self._clock.boot() else -HOUR
            with self._api.write() as connection:
                row = journal.OPERATIONS.update().where(journal.OPERATIONS.c.id == saga_id)
                connection.execute(row.values(lease_until=utc_now(left)))
