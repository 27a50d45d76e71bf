"""What the steps of every operation on a server see of it."""

from __future__ import annotations

from typing import Any, Generic

import sqlalchemy as sa

from causeway import errors
from causeway.context import RequestContext
from causeway.model.instance import ActionEvent
from causeway.model.operations import Operation
from causeway.model.outcomes import MoveToken
from causeway.parts.services import ConductorServices
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
        #: the same as ``services``, for what needs no lease
        self.unguarded = services
        self._cache: dict[str, Any] = {}
        self._history_is_written = False

    @property
    def services(self) -> ConductorServices:
        """What steps work with, for as long as this conductor owns the operation."""
        self.check_lease()
        return self.unguarded

    @property
    def uuid(self) -> str:
        """The server's."""
        return self.saga.instance_uuid

    def token(self, step: str) -> MoveToken:
        """Under whose orders a compute acts."""
        return MoveToken(self.saga.id, self.saga.migration_uuid, self.saga.epoch, step)

    def refresh(self) -> None:
        """Users may have changed the records since they were read."""
        self._cache.clear()

    # the server's history

    def history(self, failure: errors.CausewayError | None = None) -> list[ActionEvent]:  # noqa: ARG002
        """What the history of the server's action gets when the operation ends."""
        return self.step_events()

    def step_events(self) -> list[ActionEvent]:
        """The events that the steps made, as they stand in the history of an action."""
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
        """Puts the events into the history of the server's action, in a transaction of its cell. Written before: not again."""
        add = actions.add_first_events_in if self.is_first and not self._history_is_written else actions.add_events_in
        self._history_is_written = True
        add(connection, self.uuid, self.context.request_id, self.history(failure))
