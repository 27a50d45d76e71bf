"""Claims resources in Placement. Claims of one scheduler on the same provider take turns.

A claim raises the generation of each provider that it concerns, so Placement repeats or refuses claims that come in between.
Taking turns here saves it that work. Between schedulers, Placement decides.

An order may be carried out late: it waited in a queue, or this process stood still. Its sender may have stopped waiting, and have
released what the order had claimed so far. So a late order is compared with the journal before the claim, and after it. What
is claimed all the same is released: by whoever undoes the operation if that happens after the second look, and else here. An
order that is not late costs nothing more, since no sender stops waiting so soon.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack

from causeway import errors
from causeway.clients.placement import AllocationRecord, AllocationRequest, PlacementClient
from causeway.model.orders import Awaited, Order
from causeway.scheduler.request import MoveClaim, RequestSpec

LOG = logging.getLogger(__name__)

_TURNS = 256
# Seconds after which an order is late: far less than a call waits for its answer, or a lease lasts.
LATE = 0.5


class Claims:
    def __init__(self, placement: PlacementClient, awaited: Callable[[Order], Awaited] | None = None) -> None:
        """``awaited``: looks into the journal; None: every answer is awaited."""
        self._placement = placement
        self._awaited = awaited
        self._turns = [threading.Lock() for _ in range(_TURNS)]

    def claim(
        self,
        spec: RequestSpec,
        instance_uuid: str,
        how: AllocationRequest,
        move: MoveClaim | None,
        *,
        keeps_disk: bool = False,
    ) -> None:
        """Claims resources for a server. ``move``: the migration gets the server's present allocations, except a disk that the
        server keeps, because the host shares its storage (``keeps_disk``).

        Raises ClaimRefused, and StateChanged if the operation does not wait for the answer any more: then nothing is claimed.
        """
        # A move also changes the allocations on its source.
        with self._turn([*how.allocations, *([move.source_node] if move is not None else [])]):
            if self._look(spec.order) is not Awaited.YES:
                raise _too_late(instance_uuid)
            claimed = self._claim(spec, instance_uuid, how, move, keeps_disk=keeps_disk)
            awaited = self._look(spec.order)
            if awaited is Awaited.NO and claimed.is_written:
                LOG.info("The host that was claimed too late for server %s is released", instance_uuid)
                self._undo(claimed, move, spec.source_disk_gb)
            if awaited is not Awaited.YES:
                raise _too_late(instance_uuid)

    def _look(self, order: Order | None) -> Awaited:
        if order is None or self._awaited is None or abs(time.time() - order.sent_at) < LATE:
            return Awaited.YES
        return self._awaited(order)

    def _claim(
        self, spec: RequestSpec, instance_uuid: str, how: AllocationRequest, move: MoveClaim | None, *, keeps_disk: bool
    ) -> AllocationRecord:
        if move is None:
            return self._placement.claim(
                instance_uuid, how.allocations, spec.project_id, spec.user_id, replace=not spec.is_new
            )
        return self._placement.claim_for_move(
            instance_uuid,
            move.migration_uuid,
            how.allocations,
            spec.project_id,
            spec.user_id,
            source_provider=move.source_node,
            source=move.source,
            keeps_disk=keeps_disk,
        )

    def _undo(self, claimed: AllocationRecord, move: MoveClaim | None, disk_gb: int | None) -> None:
        if move is None:
            self._placement.undo_claim(claimed)
        else:
            self._placement.return_allocations(
                claimed.consumer_uuid, move.migration_uuid, source_provider=move.source_node, disk_gb=disk_gb
            )

    def _turn(self, providers: Iterable[str]) -> ExitStack:
        """Holds the locks of providers. Every claim takes them in the same order, so no two claims wait for each other."""
        with ExitStack() as turns:
            for number in sorted({hash(provider) % _TURNS for provider in providers}):
                turns.enter_context(self._turns[number])
            return turns.pop_all()


def _too_late(instance_uuid: str) -> errors.StateChanged:
    return errors.StateChanged(
        f"The scheduler came too late to claim a host for server {instance_uuid}: its operation does not wait for that any more."
    )
