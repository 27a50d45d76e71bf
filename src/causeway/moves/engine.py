"""Runs moves: each step's intent is in the journal before it acts, its outcome after.

Before the pivot a failure undoes what was begun, the failed step first, then the finished ones in reverse order; then the
server is given back. After the pivot the move only goes forward: a step that fails is tried again with back-off. What can't
be done now, forward or back, makes the move *stuck*: it is tried again later, until its cause is gone.

A move is in the hands of one conductor at a time, which holds its *lease*. Whoever takes a move (`Engine.run`) raises its
*epoch*: from then on the journal refuses what the former owner writes, and computes refuse what it asks. So a conductor that
was only slow learns of it with its next write or call, and stops.

Everything a move knows is in the journal, so any conductor can go on with it. If the move was let go between two steps, it
goes on; if a step was in doubt it is undone before the pivot, and repeated after it. Both are idempotent.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from causeway import errors, metrics
from causeway.conductor.services import ConductorServices
from causeway.context import RequestContext
from causeway.faults import injector
from causeway.model.moves import Move, MoveState, MoveStep, StepPhase, StepState
from causeway.moves.late import Late
from causeway.moves.recipe import Recipe, Step
from causeway.moves.recipes import RECIPES
from causeway.moves.run import Run, boot_clock
from causeway.store.api import journal, migrations
from causeway.store.database import utcnow

LOG = logging.getLogger(__name__)


class Engine:
    """Runs moves in the threads of its callers."""

    def __init__(self, services: ConductorServices) -> None:
        self._services = services
        self._options = services.conf.moves
        self.late = Late()

    def run(self, context: RequestContext, move_id: str) -> Move | None:
        """Takes a move and works on it until it ends, is stuck, or the conductor stops; returns it as it is then.

        None if it is not to be had: it has ended, or is in another conductor's hands.
        Raises TakenOver if another conductor took it meanwhile; that one goes on.
        """
        life, asked_at = self._services.life, boot_clock()
        with life.working_on(move_id) as nobody_else:
            if not nobody_else:
                return None
            move = journal.acquire(self._services.api, move_id, life.owner, self._options.lease, former=life.former)
            if move is None:
                return None
            run = Run(self._services, context, move, asked_at=asked_at)
            try:
                self._run(run)
            except errors.TakenOver:
                self.late.add(run)
                raise
            return move

    def _run(self, run: Run) -> None:
        move = run.move
        fresh = move.state is MoveState.REQUESTED
        progress = _Progress(run, [] if fresh else journal.steps(self._services.api, move.id))
        if fresh or move.pivoted or (move.state is MoveState.RUNNING and not progress.in_doubt):
            move.state = MoveState.RUNNING
            self._forward(progress)
        else:
            interrupted = errors.OperationFailed("The move was broken off: the conductor that worked on it stopped.")
            cause = errors.from_wire(move.error) if move.error else interrupted
            move.state = MoveState.UNDOING
            self._back(progress, cause)

    def _forward(self, progress: _Progress) -> None:
        run = progress.run
        while (step := progress.next_step(RECIPES[run.move.recipe])) is not None:
            if self._services.stopping.is_set():
                progress.let_go()
                return
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
            if self._services.stopping.is_set():
                progress.let_go()
                return
            failure = self._attempt(progress, step, StepPhase.UNDO)
            if failure is not None and not self._again(progress, step, StepPhase.UNDO, failure):
                return
        injector.reach(f"{recipe.name}.give_back.before")
        run.hold()
        recipe.given_back(run, cause)
        injector.reach(f"{recipe.name}.give_back.after")
        run.move.state, run.move.ended_at, run.move.error = MoveState.FAILED, utcnow(), cause.to_wire()
        progress.close()

    def _again(self, progress: _Progress, step: Step, phase: StepPhase, failure: errors.CausewayError) -> bool:
        """Tries a step that must succeed a few times more; parks the move if it does not."""
        pause = self._options.first_pause
        for _attempt in range(self._options.attempts - 1):
            if self._services.stopping.wait(pause):
                progress.let_go()
                return False
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
        progress.let_go(pause=self._options.stuck_retry_interval)
        return False

    def _attempt(self, progress: _Progress, step: Step, phase: StepPhase) -> errors.CausewayError | None:
        """Takes or undoes a step once; returns what went wrong."""
        run = progress.run
        try:
            progress.begin(step, phase)
        except errors.MoveCancelled as cancelled:
            return cancelled
        if phase is StepPhase.UNDO or step.needs_fresh_records or progress.is_repeated:
            run.forget_records()
        point = f"{run.move.recipe}.{step.name}.{phase}"
        try:
            injector.reach(f"{point}.before")
            (step.do if phase is StepPhase.DO else step.undo)(run)
            injector.reach(f"{point}.after")
        except errors.TakenOver:
            raise
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
        self._steps = run.steps = before
        self._ended: MoveStep | None = None

    @property
    def in_doubt(self) -> bool:
        """Whether the last step was begun and nobody knows how far it came."""
        return bool(self._steps) and self._steps[-1].state is not StepState.DONE

    @property
    def is_repeated(self) -> bool:
        """Whether the present step was tried before."""
        return self._steps[-1].attempt > 1

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
        forward = phase is StepPhase.DO
        record, ended = self._record(step, phase), self._ended
        if ended is not None and ended.sequence == record.sequence:
            # What went wrong is in the row that is tried anew.
            ended = None
        status = step.migration_status if forward else None
        run.save(
            ended=ended,
            started=record,
            unless_cancelled=forward and not run.move.pivoted,
            also=None
            if status is None
            else lambda connection: migrations.update_in(connection, run.move.migration_uuid, status=status),
        )
        self._ended = None
        self._steps[record.sequence - 1 :] = [record]
        self._current = step
        run.step = record

    def _record(self, step: Step, phase: StepPhase) -> MoveStep:
        """A row for the step; the one that it has, if it is what was tried last."""
        now, run, last = utcnow(), self.run, self._steps[-1] if self._steps else None
        if last is None or (last.step, last.phase) != (step.name, phase):
            last = MoveStep(step.name, phase, len(self._steps) + 1, attempt=0, events=[], started_at=now)
        return replace(
            last,
            state=StepState.STARTED,
            attempt=last.attempt + 1,
            epoch=run.move.epoch,
            host=step.where(run),
            bytes_done=None,
            bytes_total=None,
            tried_at=now,
            ended_at=None,
        )

    def end(self, state: StepState, error: errors.CausewayError | None = None) -> None:
        step = self._steps[-1]
        step.state, step.ended_at = state, utcnow()
        step.host = self._current.where(self.run)
        if error is not None:
            step.error = error.to_wire()
            step.first_error = step.first_error or step.error
        self._ended = step
        if step.seconds is not None:
            metrics.STEP_SECONDS.labels(self.run.move.recipe, step.step, step.phase, state).observe(step.seconds)

    def close(self, pause: float = 0.0) -> None:
        """Writes the last step's end with the state that the move came to."""
        ended, self._ended = self._ended, None
        self.run.save(ended=ended, pause=pause)

    def let_go(self, pause: float = 0.0) -> None:
        """The move is in nobody's hands from now on; ``pause`` seconds from now somebody may take it."""
        self.run.move.owner = None
        self.close(pause)
