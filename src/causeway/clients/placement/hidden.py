"""Consumers that Placement has, but does not show.

Placement commits a new consumer before its allocations, and deletes allocations before their consumer. If it is killed in
between, a consumer without allocations stays. GET shows no generation for it, DELETE finds nothing, and a write as for a new
one is refused. Only such a refusal names the generation, with which a write succeeds as for any other consumer.

A write that is under way looks the same. If it lost to ours, Placement would delete its new consumer, with ours. So a consumer is
taken for abandoned only if it has been the same for `SETTLED_AFTER`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from threading import Event

from causeway.clients.placement.http import Refusal
from causeway.clients.placement.types import AllocationRecord

# Seconds: many times what Placement needs from one transaction to the next.
SETTLED_AFTER = 1.0


class Reader:
    """Reads records for one change, with generations that only refusals showed."""

    def __init__(self, read: Callable[[str], AllocationRecord]) -> None:
        self._read = read
        self._named: dict[str, int] = {}
        self._settled: set[str] = set()

    def learn(self, refusal: Refusal) -> None:
        """Notes the generation that a refusal names."""
        if refusal.consumer is None:
            return
        if refusal.expected is None:
            self._named.pop(refusal.consumer, None)
        else:
            self._named[refusal.consumer] = refusal.expected

    def __call__(self, consumer: str) -> AllocationRecord:
        found = self._read(consumer)
        if found.generation is not None or consumer not in self._named:
            return found
        if consumer not in self._settled:
            Event().wait(SETTLED_AFTER)
            self._settled.add(consumer)
            found = self._read(consumer)
        return found if found.generation is not None else dataclasses.replace(found, generation=self._named[consumer])
