"""A running move of a server with its guest, as its steps see it."""

from __future__ import annotations

import msgspec

from causeway import errors
from causeway.context import RequestContext
from causeway.model.instance import ActionEvent
from causeway.model.operations import Operation
from causeway.moves import live_of_0_1_0
from causeway.moves.cells_run import CellsRun
from causeway.moves.memory import MoveMemory
from causeway.running.services import ConductorServices
from causeway.sagas.environment import Environment


class Run(CellsRun[MoveMemory]):
    """One move that this conductor owns."""

    def __init__(
        self,
        services: ConductorServices,
        environment: Environment[Operation],
        context: RequestContext,
        move: Operation,
        *,
        asked_at: float,
    ) -> None:
        if live_of_0_1_0.is_of_0_1_0(move):
            memory = live_of_0_1_0.memory_of(services.cells, move)
        else:
            memory = msgspec.convert(move.data, MoveMemory)
        super().__init__(services, environment, context, move, memory, asked_at=asked_at)

    @property
    def move(self) -> Operation:
        return self.saga

    # the server's history

    def history(self, failure: errors.CausewayError | None = None) -> list[ActionEvent]:
        """Returns the events of the server's action: one for the whole move, and those of the steps.

        Inside a cell some moves have no event for the whole. If such a move fails before any step has an event, the failure is
        reported as the first one.
        """
        name = self.kind.event
        of_steps = [*self.memory.events, *self.step_events()]
        if not self.memory.is_cross_cell and self.kind.event_inside_cell:
            if failure is None or any(event.result == "Error" for event in of_steps):
                return of_steps
            name = self.kind.event_inside_cell
        whole = ActionEvent(
            event=name,
            start_time=self.move.started_at,
            finish_time=self.environment.clock.now(),
            host=self.unguarded.host,
            result="Success" if failure is None else "Error",
            details=None if failure is None else failure.message,
        )
        return [whole, *of_steps]
