"""The place of a run in its recipe. One write has the end of a step and the beginning of the next one.

**A step that joins the one before it** (`Step.joining`) saves this write: it begins in memory only, and the next write has the
end of both. Until then the journal says that the former step has begun. Whoever takes the saga over repeats that step, and then
this one, which counts as repeated, too; or undoes both, because this one may have begun.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from causeway import errors
from causeway.model.sagas import StepPhase, StepRecord, StepState
from causeway.sagas.recipe import Recipe, Step
from causeway.sagas.run import Run


class Progress:
    """The place of ``run`` in its recipe. ``before``: the steps so far, including those of former owners."""

    def __init__(self, run: Run[Any, Any], before: list[StepRecord]) -> None:
        self.run = run
        self._steps = run.steps = before
        self._ended: StepRecord | None = None

    @property
    def in_doubt(self) -> StepRecord | None:
        """The last step, if it has begun and its outcome is unknown; else None."""
        return self._steps[-1] if self._steps and self._steps[-1].state is StepState.STARTED else None

    @property
    def was_undoing(self) -> bool:
        """Whether the last step was an undo, so that the saga was being undone."""
        return any(step.phase is StepPhase.UNDO for step in self._steps)

    @property
    def attempt(self) -> int:
        """The number of the present attempt of the present step, from 1."""
        return self._steps[-1].attempt if self._steps else 1

    def next_step(self, recipe: Recipe[Any]) -> Step[Any] | None:
        """Returns the first step of the recipe that has not been done; None at the end of the recipe.

        Skips steps that the saga does not have, and those that a newer release has added before the last step that has begun.
        """
        done = {step.step: step.state is StepState.DONE for step in self._steps if step.phase is StepPhase.DO}
        begun = [place for place, step in enumerate(recipe.steps) if step.name in done]
        ahead = recipe.steps[max(begun, default=0) :]
        return next((step for step in ahead if not done.get(step.name) and step.belongs_to(self.run)), None)

    def to_undo(self, recipe: Recipe[Any]) -> list[Step[Any]]:
        """Returns the steps that have begun and were not undone, latest first."""
        begun = {step.step for step in self._steps if step.phase is StepPhase.DO}
        in_doubt = {
            step.step
            for step in self._steps
            if step.phase is StepPhase.DO and (step.attempt > 1 or step.state is StepState.STARTED)
        }
        begun |= {step.name for step in recipe.steps if step.joins & in_doubt and step.belongs_to(self.run)}
        undone = {step.step for step in self._steps if step.phase is StepPhase.UNDO and step.state is StepState.DONE}
        return [step for step in reversed(recipe.steps) if step.name in begun - undone]

    def begin(self, step: Step[Any], phase: StepPhase) -> None:
        """Writes the beginning of a step, with the end of the step before.

        Raises Cancelled if the saga was cancelled before its pivot, and whatever `Step.with_start` raises.
        """
        run = self.run
        forward = phase is StepPhase.DO
        record, ended = self._record(step, phase), self._ended
        also = step.with_start(run) if forward else None
        if also is None and self._joins(step, record):
            run.unwritten = record
            self._set(step, record)
            return
        if ended is not None and ended.sequence == record.sequence:
            # Both attempts have the same row. It shows the error of the last attempt until this one ends.
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
        self._set(step, record)

    def _joins(self, step: Step[Any], record: StepRecord) -> bool:
        """Whether the beginning of a step need not be written, since that of the step before it counts for both."""
        former = self._ended
        return (
            record.phase is StepPhase.DO
            and former is not None
            and former.step in step.joins
            and former.phase is StepPhase.DO
            and former.state is StepState.DONE
            and self.run.unwritten is None
            and not step.pivots
            and not self.run.has_writes
        )

    def _set(self, step: Step[Any], record: StepRecord) -> None:
        self._steps[record.sequence - 1 :] = [record]
        self._current = step
        self.run.step = record

    def _record(self, step: Step[Any], phase: StepPhase) -> StepRecord:
        """Returns the row for the step: the last row if it is of the same step and phase, else a new one."""
        run, last = self.run, self._steps[-1] if self._steps else None
        now, skipped = run.environment.clock.now(), run.environment.clock.skipped()
        if last is None or (last.step, last.phase) != (step.name, phase):
            if last is not None:
                last.end_events(now)
            first_round = step.first_round if phase is StepPhase.DO else None
            # Whoever did the former step before may have begun this one, and not written that.
            in_doubt = phase is StepPhase.DO and last is not None and last.step in step.joins and last.attempt > 1
            last = StepRecord(
                step.name,
                phase,
                len(self._steps) + 1,
                attempt=int(in_doubt),
                round=first_round,
                events=[],
                started_at=now,
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
        """Returns the host that the step works on; ``known`` if it can't be read because the server no longer exists."""
        try:
            return step.where(self.run)
        except errors.CausewayError:
            return known

    def end(self, state: StepState, error: errors.CausewayError | None = None) -> None:
        """Notes how the present attempt ended. The next `begin`, or `close`, writes that to the journal."""
        step, run = self._steps[-1], self.run
        step.state, step.ended_at = state, run.environment.clock.now()
        step.end_events(step.ended_at)
        if state is StepState.FAILED:
            run.discard_writes()
        step.host = self._where(self._current, step.host)
        if error is not None:
            step.error = error.to_wire()
            step.first_error = step.first_error or step.error
        self._ended = step
        run.environment.observer.step_ended(run.saga, step)

    def close(self, pause: float = 0.0, *, unless_cancelled: bool = False) -> None:
        """Writes the end of the last step and the state of the saga.

        ``pause``: seconds until a process may acquire a saga without an owner. Raises Cancelled if ``unless_cancelled`` and the
        saga was cancelled.
        """
        self.run.save(ended=self._ended, pause=pause, unless_cancelled=unless_cancelled)
        self._ended = None

    def release(self, pause: float = 0.0) -> None:
        """Releases the saga. A process may acquire it ``pause`` seconds from now."""
        self.run.saga.owner = None
        self.close(pause)
