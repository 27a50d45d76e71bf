"""The engine of sagas, with everything that it needs to run operations."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeAlias

import msgspec

from causeway import clock, metrics
from causeway.context import RequestContext
from causeway.faults import injector
from causeway.model import operations
from causeway.model.operations import Operation
from causeway.model.sagas import Saga, StepRecord
from causeway.moves import recipes as moves
from causeway.moves.move_run import Run
from causeway.moves.without_guest.move_records import RecordsRun
from causeway.operations.build_run import BuildRun
from causeway.operations.delete import DeleteRun
from causeway.operations.journal import OperationJournal
from causeway.operations.recipes import RECIPES
from causeway.requests import requesters
from causeway.running.operation_run import OperationRun
from causeway.running.server_run import ServerRun
from causeway.running.services import ConductorServices
from causeway.sagas import clock as sagas_clock
from causeway.sagas import engine
from causeway.sagas.environment import Environment
from causeway.sagas.observer import Observer
from causeway.sagas.versions import Knowledge
from causeway.store.api import journal

Engine: TypeAlias = engine.Engine[Operation]

KNOWLEDGE = Knowledge(RECIPES)

# Recipes whose runs have more than the common run of an operation.
_RUNS: dict[str, type[OperationRun[Any]]] = {
    operations.BUILD: BuildRun,
    operations.DELETE: DeleteRun,
    operations.MOVE_RECORDS: RecordsRun,
    operations.UNSHELVE_ACROSS_CELLS: RecordsRun,
}


class OperationObserver(Observer):
    """Counts metrics and reaches fault points. ``host``: of this conductor."""

    def __init__(self, host: str) -> None:
        self._host = host

    def reach(self, point: str) -> None:
        injector.reach(point)

    def step_ended(self, saga: Saga, step: StepRecord) -> None:
        if step.seconds is not None:
            metrics.STEP_SECONDS.labels(saga.recipe, step.step, step.phase, step.state).observe(step.seconds)

    def saga_ended(self, saga: Saga) -> None:
        metrics.OPERATIONS_ENDED.labels(saga.recipe, saga.state).inc()
        if saga.started_at is not None and saga.ended_at is not None:
            seconds = (saga.ended_at - saga.started_at).total_seconds()
            metrics.OPERATION_SECONDS.labels(saga.recipe, saga.state).observe(seconds)

    @contextmanager
    def working_on(self, context: RequestContext, saga_id: str) -> Iterator[None]:
        # Log lines of this thread have the request's id from here on.
        context.update_store()
        with injector.scope(host=self._host, operation_id=saga_id):
            yield

    def hangs(self, saga_id: str) -> bool:
        return injector.is_hanging(saga_id)


class _Clock(sagas_clock.Clock):
    """The clock of sagas whose transfers use a clock that may jump."""

    def __init__(self, transfers: clock.Clock) -> None:
        self._transfers = transfers

    def skipped(self) -> timedelta:
        return timedelta(seconds=self._transfers.skipped())


def engine_of(services: ConductorServices) -> Engine:
    """The engine that runs operations for a conductor."""
    options = services.conf.moves
    environment = Environment[Operation](
        OperationJournal(services.api, options.lease),
        services.life,
        options,
        services.stopping,
        clock=_Clock(services.clock),
        observer=OperationObserver(services.host),
    )

    def begin(context: RequestContext, operation: Operation, asked_at: float) -> ServerRun[Any]:
        # Accepted work: it may continue with our own credentials, but only for what was checked before.
        context = _with_users_rights(services, context, operation).for_work(
            requesters.checked_of(operation.requested_by)
        )
        if operation.recipe in moves.WITH_GUEST:
            return Run(services, environment, context, operation, asked_at=asked_at)
        memory = msgspec.convert(operation.data, RECIPES[operation.recipe].memory)
        return _RUNS.get(operation.recipe, OperationRun)(
            services, environment, context, operation, memory, asked_at=asked_at
        )

    return engine.Engine(environment, KNOWLEDGE, begin)


def _with_users_rights(services: ConductorServices, context: RequestContext, operation: Operation) -> RequestContext:
    """Returns the context of the user who requested the operation, while the journal has the user's token."""
    if context.auth_token:
        return context
    kept = requesters.context_of(services.conf, journal.requester(services.api, operation.id), operation.instance_uuid)
    return kept if kept is not None and kept.auth_token else context
