"""A step that a newer release put in front of what a move has begun does not run late."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from causeway.model.sagas import StepPhase, StepRecord, StepState
from causeway.moves.recipes import CROSS_CELL_CONFIRM
from causeway.sagas.progress import Progress


def progress(*steps: tuple[str, StepState]) -> Progress:
    run: Any = SimpleNamespace(steps=[])
    records = [StepRecord(name, StepPhase.DO, number + 1, state=state) for number, (name, state) in enumerate(steps)]
    return Progress(run, records)


@pytest.mark.parametrize(
    ("done", "following"),
    [
        ((), "CheckTarget"),
        ((("CheckTarget", StepState.DONE),), "ConfirmResizeAtSource"),
        # Begun by a release without the check.
        ((("ConfirmResizeAtSource", StepState.DONE),), "DeleteSourceRecords"),
        ((("ConfirmResizeAtSource", StepState.STARTED),), "ConfirmResizeAtSource"),
        ((("ConfirmResizeAtSource", StepState.DONE), ("DeleteSourceRecords", StepState.FAILED)), "DeleteSourceRecords"),
        ((("ConfirmResizeAtSource", StepState.DONE), ("FinishConfirm", StepState.DONE)), None),
    ],
)
def test_the_next_step_follows_what_has_begun(done: tuple[tuple[str, StepState], ...], following: str | None) -> None:
    step = progress(*done).next_step(CROSS_CELL_CONFIRM)
    assert (step.name if step is not None else None) == following
