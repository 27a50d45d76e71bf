"""Runs one saga. The engine writes to the journal that a step begins before the step acts, and how it ended afterwards."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Generic

from causeway import errors
from causeway.model.sagas import SagaState, StepPhase, StepState
from causeway.sagas import retries
from causeway.sagas.environment import Environment
from causeway.sagas.journal import S, Write
from causeway.sagas.late import Late
from causeway.sagas.progress import Progress
from causeway.sagas.recipe import Recipe, Step
from causeway.sagas.run import Run
from causeway.sagas.versions import Knowledge

LOG = logging.getLogger(__name__)

# Seconds between two checks whether a saga is still wanted, while it waits for the next attempt of a step.
LOOK_EVERY = 1.0


class Engine(Generic[S]):
    """Runs sagas in the threads of its callers.

    ``begin``: makes the run of an acquired saga. It gets the caller's context, the saga, and the clock's `boot` time just before
    the saga was acquired.
    """

    def __init__(
        self,
        environment: Environment[S],
        knowledge: Knowledge,
        begin: Callable[[Any, S, float], Run[S, Any]],
    ) -> None:
        self.environment = environment
        self.knowledge = knowledge
        self.late = Late(environment)
        self._begin = begin
        self._options = environment.options
        self._clock = environment.clock
        self._stopping = environment.stopping
        self._observer = environment.observer

    def run(self, context: Any, saga_id: str) -> S | None:
        """Acquires a saga and works on it until it ends, is released or stuck, or the process stops. Returns it as it is then.

        Returns None if the saga had ended before, another process owns it, or this release can't run it. Raises TakenOver if
        another process has acquired it meanwhile.
        """
        life, asked_at = self.environment.life, self._clock.boot()
        with life.working_on(saga_id) as nobody_else:
            if not nobody_else:
                return None
            saga = self.environment.journal.acquire(saga_id, life.owner, self._options.lease, former=life.former)
            if saga is None:
                return None
            self.knowledge.adopt(saga)
            unknown = self.knowledge.unknown_in(saga)
            if unknown is not None:
                self._park(saga, unknown)
                return None
            run = self._begin(context, saga, asked_at)
            run.is_unowned = run.is_first = saga.state is SagaState.REQUESTED
            try:
                self._run(run)
            except (errors.TakenOver, errors.DatabaseFailed):
                self.late.add(run, self._recipe(run).undo_late)
                raise
            return saga

    def carry_out(self, context: Any, saga: S, admit: Write) -> S:
        """Begins a saga that is not in the journal yet, and works on it like `run`. Returns it as it is then.

        ``admit`` is called in the transaction that writes the saga. If it raises an error, the saga does not begin, and this
        raises the same error. Raises TakenOver if another process has acquired the saga meanwhile, DatabaseFailed if it could
        not be written.
        """
        life, asked_at = self.environment.life, self._clock.boot()
        with life.working_on(saga.id):
            saga.owner, saga.state = life.owner, SagaState.RUNNING
            saga.recipe_version = self.knowledge.recipes[saga.recipe].version
            run = self._begin(context, saga, asked_at)
            run.is_new = run.is_first = True
            run.with_next_save(admit)
            try:
                self._do_steps(Progress(run, []))
            except (errors.TakenOver, errors.DatabaseFailed):
                self.late.add(run, self._recipe(run).undo_late)
                raise
        return saga

    def _park(self, saga: S, why: str) -> None:
        """Parks the saga, so that a process of a release that knows it can run it."""
        LOG.warning("Saga %s is parked for another release: %s", saga.id, why)
        if saga.state is SagaState.REQUESTED:
            # It has no owner yet.
            saga.epoch -= 1
        self.environment.journal.park(saga, f"{self.knowledge.digest} {why}")

    def _recipe(self, run: Run[S, Any]) -> Recipe[Any]:
        """Returns the present recipe of the saga. A step may have changed it."""
        return self.knowledge.recipes[run.saga.recipe]

    def _run(self, run: Run[S, Any]) -> None:
        saga = run.saga
        fresh = saga.state is SagaState.REQUESTED
        before = [] if fresh else self.environment.journal.steps(saga.id)
        for step in before:
            step.step = self.knowledge.present_name(saga.recipe, step.step)
        progress = Progress(run, before)
        if fresh:
            saga.recipe_version = self._recipe(run).version
        was_undoing = saga.state is SagaState.UNDOING or (saga.state is SagaState.STUCK and progress.was_undoing)
        if was_undoing and not saga.pivoted:
            cause = errors.from_wire(saga.error) if saga.error else _interrupted()
            saga.state = SagaState.UNDOING
            self._undo_steps(progress, cause)
            return
        saga.state, saga.parked = SagaState.RUNNING, None
        obstacle = self._obstacle_to_resuming(progress)
        if obstacle is not None:
            self._begin_undoing(progress, obstacle)
        else:
            self._do_steps(progress)

    def _obstacle_to_resuming(self, progress: Progress) -> errors.CausewayError | None:
        """Returns why a saga that its former owner released or lost must be undone; None if it continues."""
        run, doubtful = progress.run, progress.in_doubt
        if self._recipe(run).attended and run.steps and not run.saga.pivoted:
            return _interrupted()
        if run.saga.pivoted or (doubtful is None and run.saga.error is None):
            return None
        if doubtful is not None:
            now = self._clock.now()
            run.saga.failing_since = since = run.saga.failing_since or now
            step = progress.next_step(self._recipe(run))
            if step is not None and retries.is_hopeless(
                doubtful, patience=step.patience(run), failing_since=since, now=now, options=self._options
            ):
                return _interrupted()
        return self._why_unwanted(run)

    # forward

    def _do_steps(self, progress: Progress) -> None:
        run = progress.run
        while (step := progress.next_step(self._recipe(run))) is not None:
            # If the end of the last step is the pivot, the saga continues even while the process stops: only the beginning of the
            # next step writes that end.
            if self._stopping.is_set() and not run.is_pivoting:
                progress.release()
                return
            # A step may have changed the recipe; or another release, which did not join the same steps, began the saga.
            run.saga.recipe_version = self._recipe(run).version
            failure = self._attempt(progress, step, StepPhase.DO)
            if failure is None:
                run.saga.error = run.saga.failing_since = None
            elif not self._handle_failure(progress, step, failure):
                return
        run.saga.recipe_version = self._recipe(run).version
        run.saga.state, run.saga.ended_at = SagaState.DONE, self._clock.now()
        try:
            progress.close(unless_cancelled=not run.saga.pivoted)
        except errors.TakenOver:
            raise
        except (errors.Cancelled, errors.StateChanged) as obstacle:
            run.saga.ended_at = None
            self._begin_undoing(progress, obstacle)

    def _handle_failure(self, progress: Progress, step: Step[Any], failure: errors.CausewayError) -> bool:
        """Handles the failure of a step. Returns whether the saga continues in this thread.

        If not, it was rolled back or released, or it is stuck.
        """
        run = progress.run
        if run.saga.pivoted:
            return self._retry_until_stuck(progress, step, StepPhase.DO, failure)
        now = self._clock.now()
        run.saga.failing_since = run.saga.failing_since or now
        pause = retries.pause_after(
            failure,
            attempt=progress.attempt,
            patience=step.patience(run),
            failing_since=run.saga.failing_since,
            now=now,
            options=self._options,
        )
        if pause is None:
            self._begin_undoing(progress, failure)
            return False
        LOG.warning("Saga %s retries %s in %.1f s: %s", run.saga.id, step.name, pause, failure.message)
        run.saga.error = failure.to_wire()
        if pause > retries.LONGEST_HELD_PAUSE:
            progress.release(pause)
            return False
        progress.close()
        return self._wait_for_retry(progress, pause)

    def _wait_for_retry(self, progress: Progress, pause: float) -> bool:
        """Waits for the next attempt. Returns False if the saga was rolled back or released meanwhile."""
        end = self._clock.boot() + pause
        while (left := end - self._clock.boot()) > 0:
            if self._clock.wait(self._stopping, min(left, LOOK_EVERY)):
                progress.release()
                return False
            unwanted = self._why_unwanted(progress.run)
            if unwanted is not None:
                self._begin_undoing(progress, unwanted)
                return False
        return True

    def _why_unwanted(self, run: Run[S, Any]) -> errors.CausewayError | None:
        """Returns why the saga is no longer wanted; None if it is."""
        try:
            run.check_wanted()
        except (errors.Cancelled, errors.StateChanged) as change:
            if isinstance(change, errors.TakenOver):
                raise
            return change
        return None

    # back

    def _begin_undoing(self, progress: Progress, cause: errors.CausewayError) -> None:
        saga = progress.run.saga
        saga.state, saga.error, saga.failing_since = SagaState.UNDOING, cause.to_wire(), None
        self._undo_steps(progress, cause)

    def _undo_steps(self, progress: Progress, cause: errors.CausewayError) -> None:
        run = progress.run
        recipe = self._recipe(run)
        progress.close()
        for step in progress.to_undo(recipe):
            if self._stopping.is_set():
                progress.release()
                return
            failure = self._attempt(progress, step, StepPhase.UNDO)
            if run.saga.pivoted:
                # The step found that it can't be undone, and set the pivot. The saga goes forward as if no rollback had begun.
                run.saga.state, run.saga.error = SagaState.RUNNING, None
                progress.close()
                self._do_steps(progress)
                return
            if failure is not None and not self._retry_until_stuck(progress, step, StepPhase.UNDO, failure):
                return
        self._observer.reach(f"{recipe.name}.roll_back.before")
        unwanted = self._why_unwanted(run)
        if isinstance(unwanted, errors.Cancelled):
            cause = unwanted
        if unwanted is None and recipe.try_again is not None and recipe.try_again(run, cause):
            LOG.warning(
                "Saga %s was undone, and another saga tries the whole once more: %s", run.saga.id, cause.message
            )
        else:
            recipe.rolled_back(run, cause)
        self._observer.reach(f"{recipe.name}.roll_back.after")
        run.saga.state, run.saga.ended_at, run.saga.error = SagaState.FAILED, self._clock.now(), cause.to_wire()
        progress.close()

    # one step

    def _retry_until_stuck(
        self, progress: Progress, step: Step[Any], phase: StepPhase, failure: errors.CausewayError
    ) -> bool:
        """Tries a failed step a few more times. Returns whether it succeeded; if not, the saga is stuck."""
        pause = self._options.first_pause
        for _attempt in range(self._options.attempts - 1):
            if failure.takes_long:
                break
            if self._clock.wait(self._stopping, pause):
                progress.release()
                return False
            pause *= 2
            again = self._attempt(progress, step, phase)
            if again is None:
                return True
            failure = again
        saga = progress.run.saga
        saga.state = SagaState.STUCK
        if phase is StepPhase.DO:
            saga.error = failure.to_wire()
        # Operators know of a host that they have fenced.
        is_waiting = failure.passes_by_itself or isinstance(failure, errors.HostFenced)
        LOG.log(
            logging.WARNING if is_waiting else logging.ERROR,
            "Saga %s is stuck in %s of %s, and tried again later: %s %s",
            *(saga.id, phase, step.name, failure.message, failure.details),
        )
        progress.release(retries.pause_when_stuck(failure, attempt=progress.attempt, options=self._options))
        return False

    def _attempt(self, progress: Progress, step: Step[Any], phase: StepPhase) -> errors.CausewayError | None:
        """Does or undoes a step once. Returns the error; None if it succeeded."""
        run = progress.run
        try:
            progress.begin(step, phase)
        except errors.TakenOver:
            raise
        except (errors.Cancelled, errors.StateChanged) as obstacle:
            return obstacle
        run.refresh()
        point = f"{run.saga.recipe}.{step.name}.{phase}"
        try:
            self._observer.reach(f"{point}.before")
            (step.do if phase is StepPhase.DO else step.undo)(run)
            self._observer.reach(f"{point}.after")
        except errors.TakenOver:
            raise
        except errors.CausewayError as failure:
            error = failure
        except Exception as failure:
            LOG.exception("Step %s failed with an unexpected error", step.name)
            error = errors.UnexpectedFailure(
                f"{step.name} failed unexpectedly: {type(failure).__name__}.", details=repr(failure)
            )
        else:
            progress.end(StepState.DONE)
            return None
        LOG.info("Saga %s: %s of %s failed: %s %s", run.saga.id, phase, step.name, error.message, error.details)
        progress.end(StepState.FAILED, error)
        return error


def _interrupted() -> errors.CausewayError:
    return errors.Interrupted(
        "The operation was interrupted, because the process that worked on it stopped. Try again."
    )
