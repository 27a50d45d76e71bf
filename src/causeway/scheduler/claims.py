"""Claims resources in Placement. Claims of one scheduler on the same provider take turns.

A claim raises the generation of each provider that it concerns, so Placement repeats or refuses claims that come in between.
Taking turns here saves it that work. Between schedulers, Placement decides.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextlib import ExitStack

from causeway.clients.placement import AllocationRequest, PlacementClient
from causeway.scheduler.request import MoveClaim, RequestSpec

_TURNS = 256


class Claims:
    def __init__(self, placement: PlacementClient) -> None:
        self._placement = placement
        self._turns = [threading.Lock() for _ in range(_TURNS)]

    def claim(self, spec: RequestSpec, instance_uuid: str, how: AllocationRequest, move: MoveClaim | None) -> None:
        """Claims resources for a server. ``move``: the migration gets the server's present allocations. Raises ClaimRefused."""
        # A move also changes the allocations on its source.
        with self._turn([*how.allocations, *([move.source_node] if move is not None else [])]):
            if move is None:
                self._placement.claim(
                    instance_uuid, how.allocations, spec.project_id, spec.user_id, replace=not spec.is_new
                )
                return
            self._placement.claim_for_move(
                instance_uuid,
                move.migration_uuid,
                how.allocations,
                spec.project_id,
                spec.user_id,
                source_provider=move.source_node,
                source=move.source,
            )

    def _turn(self, providers: Iterable[str]) -> ExitStack:
        """Holds the locks of providers. Every claim takes them in the same order, so no two claims wait for each other."""
        with ExitStack() as turns:
            for number in sorted({hash(provider) % _TURNS for provider in providers}):
                turns.enter_context(self._turns[number])
            return turns.pop_all()
