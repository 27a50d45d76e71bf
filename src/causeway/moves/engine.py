"""Runs moves: each step's intent is in the journal before it acts, its outcome after.

Before the pivot a failure undoes what was begun, the failed step first, then the finished ones in reverse order; then the
server is given back. After the pivot the move only goes forward: a step that fails is tried again with back-off. What can't
be done now, forward or back, makes the move `stuck`; `resume` tries it again until its cause is gone.

Everything a move knows is in the journal: any conductor can go on with it (`resume`). A step that was in doubt when its
conductor died is undone or repeated; both are idempotent.
"""

from __future__ import annotations

import logging

from causeway import errors
from causeway.conductor.services import ConductorServices
from causeway.context import RequestContext
from causeway.model.moves import MOVE_ENDED, MoveState, MoveStep, StepPhase, StepState
from causeway.moves.recipe import Recipe, Step
from causeway.moves.recipes import RECIPES
from causeway.moves.run import Run
from causeway.store.api import journal, migrations
from causeway.store.database import utcnow

LOG = logging.getLogger(__name__)

# Tries of a step that must succeed, before the move is parked as stuck; seconds between them double each time.
ATTEMPTS = 4
FIRST_PAUSE = 0.5


class Engine:
    """Runs moves in the threads of its callers."""

    def __init__(self, services: ConductorServices) -> None:
        self._services = services

    def run(self, context: RequestContext, move_id: str) -> MoveState:
        """Runs a requested move, or goes on with one that was left in the middle. Returns the state it came to.

        Raises StateChanged if another conductor took the move over meanwhile; that one goes on.
        """
        move = journal.get(self._services.api, move_id)
        if move.state in MOVE_ENDED:
            return move.state
        run = Run(self._services, context, move)
        before = journal.steps(self._services.api, move_id) if move.state is not MoveState.REQUESTED else []
        progress = _Progress(run, before)
        if move.state is MoveState.REQUESTED or move.pivoted:
            move.owner, move.state = self._services.host, MoveState.RUNNING
            self._forward(progress)
        else:
            interrupted = errors.OperationFailed("The move was broken off: the conductor that worked on it stopped.")
            cause = errors.from_wire(move.error) if move.error else interrupted
            move.owner, move.state = self._services.host, MoveState.UNDOING
            self._back(progress, cause)
        return move.state

    def _forward(self, progress: _Progress) -> None:
        run = progress.run
        while (step := progress.next_step(RECIPES[run.move.recipe])) is not None:
            failure = self._attempt(progress, step, StepPhase.DO)
            if failure is None:
                continue
            if not run.move.pivoted:
                run.move.state = MoveState.UNDOING
                run.move.error = failure.to_wire()
                self._back(progress, failure)
                return
            if not self._again(progress, step, StepPhase.DO, failure):
                return
        run.move.state, run.move.ended_at = MoveState.DONE, utcnow()
        progress.close()

    def _back(self, progress: _Progress, cause: errors.CausewayError) -> None:
        run = progress.run
        recipe = RECIPES[run.move.recipe]
        progress.close()
        for step in progress.begun(recipe):
            failure = self._attempt(progress, step, StepPhase.UNDO)
            if failure is not None and not self._again(progress, step, StepPhase.UNDO, failure):
                return
        recipe.given_back(run, cause)
        run.move.state, run.move.ended_at, run.move.error = MoveState.FAILED, utcnow(), cause.to_wire()
        progress.close()

    def _again(self, progress: _Progress, step: Step, phase: StepPhase, failure: errors.CausewayError) -> bool:
        """Tries a step that must succeed a few times more; parks the move if it does not."""
        pause = FIRST_PAUSE
        for _attempt in range(ATTEMPTS - 1):
            if self._services.stopping.wait(pause):
                break
            pause *= 2
            again = self._attempt(progress, step, phase)
            if again is None:
                return True
            failure = again
        run = progress.run
        run.move.state = MoveState.STUCK
        if phase is StepPhase.DO:
            run.move.error = failure.to_wire()
        LOG.error("Move %s is stuck in %s of %s: %s", run.move.id, phase, step.name, failure.message)
        progress.close()
        return False

    def _attempt(self, progress: _Progress, step: Step, phase: StepPhase) -> errors.CausewayError | None:
        """Takes or undoes a step once; returns what went wrong."""
        run = progress.run
        progress.begin(step, phase)
        run.forget_records()
        try:
            (step.do if phase is StepPhase.DO else step.undo)(run)
        except Exception as failure:
            LOG.info("Move %s: %s of %s failed", run.move.id, phase, step.name, exc_info=True)
            error = failure if isinstance(failure, errors.CausewayError) else _unexpected(step, failure)
            progress.end(StepState.FAILED, error)
            return error
        progress.end(StepState.DONE)
        return None


def _unexpected(step: Step, failure: Exception) -> errors.CausewayError:
    LOG.error("Step %s failed in a way that it should not", step.name, exc_info=failure)
    return errors.OperationFailed(f"{step.name} failed unexpectedly: {type(failure).__name__}.", details=repr(failure))


class _Progress:
    """Where a run is in its recipe. The end of a step is written together with the beginning of the next."""

    def __init__(self, run: Run, before: list[MoveStep]) -> None:
        self.run = run
        self._steps = before
        self._ended: MoveStep | None = None

    def next_step(self, recipe: Recipe) -> Step | None:
        """The first step of the recipe that has not been done; None at its end."""
        done = {step.step for step in self._steps if step.phase is StepPhase.DO and step.state is StepState.DONE}
        return next((step for step in recipe.steps if step.name not in done), None)

    def begun(self, recipe: Recipe) -> list[Step]:
        """The steps that were begun and not undone, latest first."""
        begun = {step.step for step in self._steps if step.phase is StepPhase.DO}
        undone = {step.step for step in self._steps if step.phase is StepPhase.UNDO and step.state is StepState.DONE}
        return [step for step in reversed(recipe.steps) if step.name in begun - undone]

    def begin(self, step: Step, phase: StepPhase) -> None:
        run = self.run
        attempt = 1 + sum(1 for other in self._steps if other.step == step.name and other.phase is phase)
        record = MoveStep(
            step=step.name,
            phase=phase,
            sequence=len(self._steps) + 1,
            attempt=attempt,
            epoch=run.move.epoch,
            host=step.where(run),
            started_at=utcnow(),
        )
        status = step.migration_status if phase is StepPhase.DO else None
        ended, self._ended = self._ended, None
        run.save(
            ended=ended,
            started=record,
            also=None
            if status is None
            else lambda connection: migrations.update_in(connection, run.move.migration_uuid, status=status),
        )
        self._steps.append(record)
        self._current = step
        run.step = record

    def end(self, state: StepState, error: errors.CausewayError | None = None) -> None:
        step = self._steps[-1]
        step.state, step.ended_at = state, utcnow()
        step.host = self._current.where(self.run)
        step.error = error.to_wire() if error is not None else None
        self._ended = step

    def close(self) -> None:
        """Writes the last step's end with the state that the move came to."""
        ended, self._ended = self._ended, None
        self.run.save(ended=ended)
