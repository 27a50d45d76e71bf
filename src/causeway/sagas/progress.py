"""Where a run is in its recipe. The end of a step is written together with the beginning of the next one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from causeway import errors
from causeway.model.sagas import StepPhase, StepRecord, StepState
from causeway.sagas.recipe import Recipe, Step
from causeway.sagas.run import Run


class Progress:
    """``before``: the steps so far, including those of former owners."""

    def __init__(self, run: Run[Any, Any], before: list[StepRecord]) -> None:
        self.run = run
        self._steps = run.steps = before
        self._ended: StepRecord | None = None

    @property
    def in_doubt(self) -> StepRecord | None:
        """The last step, if it began and its outcome is unknown."""
        return self._steps[-1] if self._steps and self._steps[-1].state is StepState.STARTED else None

    @property
    def was_undoing(self) -> bool:
        """Whether the saga was being undone."""
        return any(step.phase is StepPhase.UNDO for step in self._steps)

    @property
    def attempt(self) -> int:
        """The number of the present attempt of its step, from 1."""
        return self._steps[-1].attempt if self._steps else 1

    def next_step(self, recipe: Recipe[Any]) -> Step[Any] | None:
        """The first step of the recipe that has not been done; None at its end.

        Steps that a newer release has put before the last one that began are skipped.
        """
        done = {step.step: step.state is StepState.DONE for step in self._steps if step.phase is StepPhase.DO}
        begun = [place for place, step in enumerate(recipe.steps) if step.name in done]
        ahead = recipe.steps[max(begun, default=0) :]
        return next((step for step in ahead if not done.get(step.name)), None)

    def to_undo(self, recipe: Recipe[Any]) -> list[Step[Any]]:
        """The steps that began and were not undone, latest first."""
        begun = {step.step for step in self._steps if step.phase is StepPhase.DO}
        undone = {step.step for step in self._steps if step.phase is StepPhase.UNDO and step.state is StepState.DONE}
        return [step for step in reversed(recipe.steps) if step.name in begun - undone]

    def begin(self, step: Step[Any], phase: StepPhase) -> None:
        """Writes the beginning of a step.

        Raises Cancelled if the saga was cancelled in time, and what `Step.with_start` raises.
        """
        run = self.run
        forward = phase is StepPhase.DO
        record, ended = self._record(step, phase), self._ended
        also = step.with_start(run) if forward else None
        if ended is not None and ended.sequence == record.sequence:
            # The error of the last attempt stays in the row until this attempt ends.
            ended = None
        unless_cancelled = pivots = forward and not run.saga.pivoted
        if pivots and step.pivots:
            run.saga.pivoted = True
        try:
            run.save(ended=ended, started=record, unless_cancelled=unless_cancelled, also=also)
        except BaseException:
            run.saga.pivoted = run.saga.pivoted and not pivots
            raise
        self._ended = None
        self._steps[record.sequence - 1 :] = [record]
        self._current = step
        run.step = record

    def _record(self, step: Step[Any], phase: StepPhase) -> StepRecord:
        """The row of the step: the last one if it is this step's, else a new one."""
        run, last = self.run, self._steps[-1] if self._steps else None
        now, skipped = run.environment.clock.now(), run.environment.clock.skipped()
        if last is None or (last.step, last.phase) != (step.name, phase):
            if last is not None:
                last.end_events(now)
            first_round = step.first_round if phase is StepPhase.DO else None
            last = StepRecord(
                step.name, phase, len(self._steps) + 1, attempt=0, round=first_round, events=[], started_at=now
            )
        return replace(
            last,
            state=StepState.STARTED,
            attempt=last.attempt + 1,
            epoch=run.saga.epoch,
            host=self._where(step, last.host),
            bytes_done=None,
            bytes_total=None,
            bytes_since=now + skipped if skipped else None,
            tried_at=now,
            ended_at=None,
        )

    def _where(self, step: Step[Any], known: str | None) -> str | None:
        """The host that the step works on; ``known`` if that can't be read, because the server is gone by now."""
        try:
            return step.where(self.run)
        except errors.CausewayError:
            return known

    def end(self, state: StepState, error: errors.CausewayError | None = None) -> None:
        """Notes how the present attempt ended. It is written with the next beginning, or by `close`."""
        step, run = self._steps[-1], self.run
        step.state, step.ended_at = state, run.environment.clock.now()
        step.end_events(step.ended_at)
        if state is StepState.FAILED:
            run.withhold_pivot()
        step.host = self._where(self._current, step.host)
        if error is not None:
            step.error = error.to_wire()
            step.first_error = step.first_error or step.error
        self._ended = step
        run.environment.observer.step_ended(run.saga, step)

    def close(self, pause: float = 0.0, *, unless_cancelled: bool = False) -> None:
        """Writes the last step's end with the state of the saga.

        Raises Cancelled if it was cancelled and ``unless_cancelled``.
        """
        self.run.save(ended=self._ended, pause=pause, unless_cancelled=unless_cancelled)
        self._ended = None

    def release(self, pause: float = 0.0) -> None:
        """Releases the saga. It may be acquired ``pause`` seconds from now."""
        self.run.saga.owner = None
        self.close(pause)
