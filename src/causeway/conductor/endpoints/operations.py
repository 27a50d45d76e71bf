"""Passes moves that the API has requested to the keeper, which runs them."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Hashable
from functools import partial
from typing import TypeAlias

from causeway import errors
from causeway.context import RequestContext
from causeway.model import operations
from causeway.model.operation_kinds import recipes_where
from causeway.model.operations import Operation
from causeway.model.sagas import SagaState
from causeway.operations.requests import discard_prepared
from causeway.requests.acceptance import delete_if_refused
from causeway.requests.of_servers import context_of, run_waiting
from causeway.rpc.conductor import ConductorClient
from causeway.running.by_cell import ByCell
from causeway.running.services import ConductorServices
from causeway.sagas import keeper

LOG = logging.getLogger(__name__)

_OF_DEVICES = recipes_where(lambda kind: kind.is_of_device)

Keeper: TypeAlias = keeper.Keeper[Operation]


class OperationsEndpoint:
    """RPC: run_move, take_over_move."""

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper

    def run_move(self, context: RequestContext, *, move_id: str) -> None:
        self._keeper.submit(context, move_id)

    def take_over_move(self, context: RequestContext, *, move_id: str) -> None:
        self._keeper.resume(context, move_id)


class OperationCallers:
    """The callbacks of the keeper: ends of moves, and requests that were never accepted."""

    def __init__(self, services: ConductorServices, conductor: ConductorClient) -> None:
        self._services = services
        self._conductor = conductor
        self._checks = ByCell("Looking at the requests for moves")

    def context_of(self, saga: Operation) -> RequestContext:
        return context_of(saga)

    def hand_over(self, context: RequestContext, saga_id: str) -> None:
        self._conductor.take_over_move(context, move_id=saga_id)

    def saga_ended(self, context: RequestContext, saga: Operation) -> None:  # noqa: ARG002
        """Runs operations that have waited for the end of this one: a confirm, a revert, or the server's delete."""
        is_deleted = saga.recipe == operations.DELETE and saga.state is SagaState.DONE
        if not is_deleted and saga.recipe not in _OF_DEVICES:
            run_waiting(self._services, saga.instance_uuid)

    def check_proposed(self, sagas: list[Operation], run: Callable[[Operation], None]) -> None:
        """Checks the requests of each cell on a thread of its own, so that a cell that hangs delays no other."""
        proposed: dict[Hashable, list[Operation]] = defaultdict(list)
        for operation in sagas:
            proposed[_cells_of(operation)].append(operation)
        for cells, moves in proposed.items():
            self._checks.start(cells, partial(self._check, moves, run))

    def _check(self, moves: list[Operation], run: Callable[[Operation], None]) -> None:
        """Deletes from the journal the requests that their API has not accepted within a lease. Runs those accepted just now."""
        for operation in moves:
            if self._services.stopping.is_set():
                return
            try:
                context = context_of(operation)
                discard = partial(discard_prepared, self._services, context, operation)
                # The API has died before it accepted the request. If it is only slow, it begins the request again.
                if delete_if_refused(self._services.api, self._services.cells, operation, discard):
                    LOG.info(
                        "Operation %s was never accepted: server %s is as it was", operation.id, operation.instance_uuid
                    )
                    self.saga_ended(context, operation)
                else:
                    run(operation)
            except errors.DatabaseFailed:
                # The other requests would fail for the same reason, each after a timeout. A later look tries them again.
                raise
            except errors.CausewayError as failure:
                LOG.warning("Operation %s was not resumed: %s %s", operation.id, failure.message, failure.details)


def _cells_of(operation: Operation) -> Hashable:
    """Returns the cells in which a request may have written something."""
    chosen = operation.data.get("selection") or {}
    return operation.data.get("source_cell"), chosen.get("cell_uuid")
