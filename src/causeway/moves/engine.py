"""Runs moves: each step's intent is in the journal before it acts, its outcome after.

Before the pivot a step that failed for a passing reason is done again (`retries`), also by whoever takes the move over; a user
who changes their mind is obeyed at once. What was refused, or is out of patience, is undone: the failed step first, then the
finished ones in reverse order. Then the whole is tried once more if its reason may be gone (`second_try`), or the server is
given back. After the pivot the move only goes forward. What can't be done now, forward or back, makes the move *stuck*: it is
tried again later, until its cause is gone.

A move is in the hands of one conductor at a time, which holds its *lease*. Whoever takes a move (`Engine.run`) raises its
*epoch*: from then on the journal refuses what the former owner writes, and computes refuse what it asks. So a conductor that
was only slow learns of it with its next write or call, and stops.

Everything a move knows is in the journal, so any conductor can go on with it: a step that was in doubt is done again. Steps look
first at what is there.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace

from causeway import errors, metrics
from causeway.conductor.services import ConductorServices
from causeway.context import RequestContext
from causeway.faults import injector
from causeway.model.moves import Move, MoveState, MoveStep, StepPhase, StepState
from causeway.moves import retries, second_try
from causeway.moves.late import Late
from causeway.moves.recipe import Recipe, Step
from causeway.moves.recipes import RECIPES
from causeway.moves.run import Run, boot_clock
from causeway.moves.versions import knowledge, unknown_in
from causeway.store.api import journal, migrations
from causeway.store.database import utcnow

LOG = logging.getLogger(__name__)

# Seconds between two looks whether a move that waits in a conductor's hands is still wanted.
LOOK_EVERY = 1.0


class Engine:
    """Runs moves in the threads of its callers."""

    def __init__(self, services: ConductorServices) -> None:
        self._services = services
        self._options = services.conf.moves
        self.late = Late()

    def run(self, context: RequestContext, move_id: str) -> Move | None:
        """Takes a move and works on it until it ends, is stuck, or the conductor stops; returns it as it is then.

        None if it is not to be had: it has ended, is in another conductor's hands, or this release can't run it.
        Raises TakenOver if another conductor took it meanwhile; that one goes on.
        """
        life, asked_at = self._services.life, boot_clock()
        with life.working_on(move_id) as nobody_else:
            if not nobody_else:
                return None
            move = journal.acquire(self._services.api, move_id, life.owner, self._options.lease, former=life.former)
            if move is None:
                return None
            unknown = unknown_in(move)
            if unknown is not None:
                self._park(move, unknown)
                return None
            run = Run(self._services, context, move, asked_at=asked_at)
            try:
                self._run(run)
            except errors.TakenOver:
                self.late.add(run)
                raise
            return move

    def _park(self, move: Move, why: str) -> None:
        """Leaves the move to a release that knows it."""
        LOG.error("Move %s is left to another release: %s", move.id, why)
        journal.park(self._services.api, move, f"{knowledge()} {why}")

    def _run(self, run: Run) -> None:
        move = run.move
        fresh = move.state is MoveState.REQUESTED
        progress = _Progress(run, [] if fresh else journal.steps(self._services.api, move.id))
        if fresh:
            move.recipe_version = RECIPES[move.recipe].version
        was_undoing = move.state is MoveState.UNDOING or (move.state is MoveState.STUCK and progress.was_undoing)
        if was_undoing and not move.pivoted:
            cause = errors.from_wire(move.error) if move.error else _broken_off()
            move.state = MoveState.UNDOING
            self._back(progress, cause)
            return
        move.state, move.parked = MoveState.RUNNING, None
        unwanted = self._on_taking_up(progress)
        if unwanted is not None:
            self._undo(progress, unwanted)
        else:
            self._forward(progress)

    def _on_taking_up(self, progress: _Progress) -> errors.CausewayError | None:
        """Why a move that was let go before its pivot goes no further; None if it does."""
        run, doubtful = progress.run, progress.in_doubt
        if run.move.pivoted or (doubtful is None and run.move.error is None):
            return None
        if doubtful is not None:
            run.move.failing_since = run.move.failing_since or utcnow()
            step = progress.next_step(RECIPES[run.move.recipe])
            if step is not None and retries.is_hopeless(run, step, doubtful, utcnow()):
                return _broken_off()
        return self._unwanted(run)

    def _forward(self, progress: _Progress) -> None:
        run = progress.run
        while (step := progress.next_step(RECIPES[run.move.recipe])) is not None:
            if self._services.stopping.is_set():
                progress.let_go()
                return
            failure = self._attempt(progress, step, StepPhase.DO)
            if failure is None:
                run.move.error = run.move.failing_since = None
                # It may have become another one.
                run.move.recipe_version = RECIPES[run.move.recipe].version
                continue
            if run.move.pivoted:
                if not self._again(progress, step, StepPhase.DO, failure):
                    return
                continue
            run.move.failing_since = run.move.failing_since or utcnow()
            pause = retries.pause_after(run, step, progress.attempt, failure, utcnow())
            if pause is None:
                self._undo(progress, failure)
                return
            LOG.warning("Move %s does %s again in %.1f s: %s", run.move.id, step.name, pause, failure.message)
            run.move.error = failure.to_wire()
            if pause > retries.HELD:
                progress.let_go(pause)
                return
            progress.close()
            if not self._paused(progress, pause):
                return
        run.move.state, run.move.ended_at = MoveState.DONE, utcnow()
        progress.close()

    def _paused(self, progress: _Progress, pause: float) -> bool:
        """Waits; False if the move goes no further in these hands: it is undone, or let go."""
        end = time.monotonic() + pause
        while (left := end - time.monotonic()) > 0:
            if self._services.stopping.wait(min(left, LOOK_EVERY)):
                progress.let_go()
                return False
            unwanted = self._unwanted(progress.run)
            if unwanted is not None:
                self._undo(progress, unwanted)
                return False
        return True

    def _unwanted(self, run: Run) -> errors.CausewayError | None:
        """Why nobody wants the move any more; None if somebody does."""
        try:
            run.check_wanted()
        except (errors.MoveCancelled, errors.StateChanged) as change:
            if isinstance(change, errors.TakenOver):
                raise
            return change
        return None

    def _undo(self, progress: _Progress, cause: errors.CausewayError) -> None:
        move = progress.run.move
        move.state, move.error, move.failing_since = MoveState.UNDOING, cause.to_wire(), None
        self._back(progress, cause)

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
        unwanted = self._unwanted(run)
        if isinstance(unwanted, errors.MoveCancelled):
            cause = unwanted
        if unwanted is None and recipe.tried_again and second_try.prepare(run, cause):
            LOG.warning("Move %s was rolled back, and is tried once more: %s", run.move.id, cause.message)
        else:
            recipe.given_back(run, cause)
        injector.reach(f"{recipe.name}.give_back.after")
        run.move.state, run.move.ended_at, run.move.error = MoveState.FAILED, utcnow(), cause.to_wire()
        progress.close()

    def _again(self, progress: _Progress, step: Step, phase: StepPhase, failure: errors.CausewayError) -> bool:
        """Tries a step that must succeed a few times more; parks the move if it does not."""
        pause = self._options.first_pause
        for _attempt in range(self._options.attempts - 1):
            if isinstance(failure, errors.HostDown):
                # It will be down in a second, too: the worker is for others.
                break
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
        progress.let_go(pause=retries.pause_when_stuck(run, progress.attempt, failure))
        return False

    def _attempt(self, progress: _Progress, step: Step, phase: StepPhase) -> errors.CausewayError | None:
        """Takes or undoes a step once; returns what went wrong."""
        run = progress.run
        try:
            progress.begin(step, phase)
        except errors.MoveCancelled as cancelled:
            return cancelled
        # Users may have changed the records since the step before.
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


def _broken_off() -> errors.CausewayError:
    return errors.Interrupted("The move was broken off: the conductor that worked on it stopped.")


def _unexpected(step: Step, failure: Exception) -> errors.CausewayError:
    LOG.error("Step %s failed in a way that it should not", step.name, exc_info=failure)
    return errors.UnexpectedFailure(
        f"{step.name} failed unexpectedly: {type(failure).__name__}.", details=repr(failure)
    )


class _Progress:
    """Where a run is in its recipe. The end of a step is written together with the beginning of the next."""

    def __init__(self, run: Run, before: list[MoveStep]) -> None:
        self.run = run
        self._steps = run.steps = before
        self._ended: MoveStep | None = None

    @property
    def in_doubt(self) -> MoveStep | None:
        """The last step, if it was begun and nobody knows how far it came."""
        return self._steps[-1] if self._steps and self._steps[-1].state is StepState.STARTED else None

    @property
    def was_undoing(self) -> bool:
        """Whether anything was to be undone."""
        return any(step.phase is StepPhase.UNDO for step in self._steps)

    @property
    def attempt(self) -> int:
        """Which attempt of its step the present one is: 1 for the first."""
        return self._steps[-1].attempt if self._steps else 1

    def next_step(self, recipe: Recipe) -> Step | None:
        """The first step of the recipe that has not been done; None at its end.

        A step that a newer release put in front of what was begun does not run late.
        """
        done = {step.step: step.state is StepState.DONE for step in self._steps if step.phase is StepPhase.DO}
        begun = [place for place, step in enumerate(recipe.steps) if step.name in done]
        ahead = recipe.steps[max(begun, default=0) :]
        return next((step for step in ahead if not done.get(step.name)), None)

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
