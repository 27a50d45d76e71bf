"""A step that a newer release put in front of what a move has begun does not run late."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from causeway.model.sagas import StepPhase, StepRecord, StepState
from causeway.moves.recipes import CONFIRM
from causeway.sagas.progress import Progress


def progress(*steps: tuple[str, StepState], across: bool = True) -> Progress:
    run: Any = SimpleNamespace(steps=[], memory=SimpleNamespace(is_cross_cell=across))
    records = [StepRecord(name, StepPhase.DO, number + 1, state=state) for number, (name, state) in enumerate(steps)]
    return Progress(run, records)


@pytest.mark.parametrize(
    ("done", "following"),
    [
        ((), "CheckTarget"),
        ((("CheckTarget", StepState.DONE),), "ReleaseSource"),
        # Begun by a release without the check.
        ((("ReleaseSource", StepState.DONE),), "DeleteSourceRecords"),
        ((("ReleaseSource", StepState.STARTED),), "ReleaseSource"),
        ((("ReleaseSource", StepState.DONE), ("DeleteSourceRecords", StepState.FAILED)), "DeleteSourceRecords"),
        ((("ReleaseSource", StepState.DONE), ("FinishConfirm", StepState.DONE)), None),
    ],
)
def test_the_next_step_follows_what_has_begun(done: tuple[tuple[str, StepState], ...], following: str | None) -> None:
    step = progress(*done).next_step(CONFIRM)
    assert (step.name if step is not None else None) == following


def test_a_move_skips_steps_that_it_does_not_have() -> None:
    inside = progress(("CheckTarget", StepState.DONE), ("ReleaseSource", StepState.DONE), across=False)
    step = inside.next_step(CONFIRM)
    assert step is not None and step.name == "FinishConfirm"
