"""A running operation on a server, as its steps see it."""

from __future__ import annotations

import time
from typing import Any, Generic

import sqlalchemy as sa

from causeway import errors
from causeway.context import RequestContext
from causeway.model.instance import ActionEvent
from causeway.model.operation_kinds import OperationKind, kind_of
from causeway.model.operations import Operation
from causeway.model.orders import Order
from causeway.model.outcomes import OperationToken
from causeway.running.services import ConductorServices
from causeway.sagas import run as sagas
from causeway.sagas.environment import Environment
from causeway.sagas.run import M
from causeway.store.cell import actions


class ServerRun(sagas.Run[Operation, M], Generic[M]):
    """One operation that this conductor owns."""

    context: RequestContext

    def __init__(
        self,
        services: ConductorServices,
        environment: Environment[Operation],
        context: RequestContext,
        saga: Operation,
        memory: M,
        *,
        asked_at: float,
    ) -> None:
        super().__init__(environment, context, saga, memory, asked_at=asked_at)
        #: the same as ``services``, for use without a lease
        self.unguarded = services
        self._cache: dict[str, Any] = {}
        self._history_is_written = False

    @property
    def services(self) -> ConductorServices:
        """The services that steps use, as long as this conductor owns the operation."""
        self.check_lease()
        return self.unguarded

    @property
    def uuid(self) -> str:
        """The uuid of the server."""
        return self.saga.instance_uuid

    @property
    def kind(self) -> OperationKind:
        """The row of the operation in the table of operations."""
        return kind_of(self.saga.recipe)

    def token(self, step: str) -> OperationToken:
        """The token of an order to a compute."""
        return OperationToken(self.saga.id, self.saga.migration_uuid, self.saga.epoch, step)

    def order(self) -> Order:
        """Names an order of the present step to the scheduler, which is sent now."""
        if self.step is None:
            raise RuntimeError("only a step gives orders")
        return Order(self.saga.id, self.saga.epoch, self.step.sequence, self.step.attempt, time.time())

    def refresh(self) -> None:
        """Discards the records, since users may have changed them."""
        self._cache.clear()

    # the server's history

    def history(self, failure: errors.CausewayError | None = None) -> list[ActionEvent]:  # noqa: ARG002
        """The events for the history of the server's action, when the operation ends."""
        return self.step_events()

    def step_events(self) -> list[ActionEvent]:
        """The events of the steps, in the form of an action's history."""
        made = (event for step in self.steps for event in step.events or ())
        return [
            ActionEvent(
                event=event.event,
                start_time=event.start_time,
                finish_time=event.finish_time,
                result=event.result,
                traceback=event.traceback,
                host=event.host,
                details=event.details,
            )
            for event in made
        ]

    def write_history(self, connection: sa.Connection, failure: errors.CausewayError | None = None) -> None:
        """Writes the events into the history of the server's action, once, in a transaction of its cell."""
        add = actions.add_first_events_in if self.is_first and not self._history_is_written else actions.add_events_in
        self._history_is_written = True
        add(connection, self.uuid, self.context.request_id, self.history(failure))
