"""Writes of consumers' allocations, and the records that are remembered of them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

from causeway.clients.placement.types import AllocationRecord, Allocations


class Write:
    """A change of one consumer's allocations. ``before``: its record, as far as known."""

    def __init__(self, before: AllocationRecord, allocations: Allocations, project_id: str, user_id: str) -> None:
        self.before = before
        self.after = AllocationRecord(
            consumer_uuid=before.consumer_uuid,
            allocations=allocations,
            generation=(before.generation or 0) + 1,
            project_id=project_id,
            user_id=user_id,
            is_written=True,
        )

    def body(self) -> dict[str, Any]:
        return {
            "allocations": {uuid: {"resources": held} for uuid, held in self.after.allocations.items()},
            "project_id": self.after.project_id,
            "user_id": self.after.user_id,
            "consumer_generation": self.before.generation,
        }


class Records:
    """The records that were last written or read. The oldest are discarded first."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._records: OrderedDict[str, AllocationRecord] = OrderedDict()

    def get(self, consumer: str) -> AllocationRecord | None:
        with self._lock:
            return self._records.get(consumer)

    def put(self, record: AllocationRecord) -> None:
        with self._lock:
            self._records[record.consumer_uuid] = record
            self._records.move_to_end(record.consumer_uuid)
            while len(self._records) > self._size:
                self._records.popitem(last=False)

    def discard(self, consumer: str) -> None:
        with self._lock:
            self._records.pop(consumer, None)
