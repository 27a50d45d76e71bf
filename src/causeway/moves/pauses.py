"""How long a guest stood still or was off while its server moved, computed from the times of the steps in the journal."""

from __future__ import annotations

from collections.abc import Sequence

from causeway.model.operations import NEAR_LIVE_MIGRATION, RESIZE
from causeway.model.sagas import SagaState, StepPhase, StepRecord

# recipe -> the first and the last step in which the guest is off or stands still.
_OFF = {
    RESIZE: ("HandOver", "FinishAtTarget"),
    # Of 0.1.0.
    "cross_cell_resize": ("PrepResizeAtSource", "FinishResizeAtDest"),
    "same_cell_resize": ("ResizeInstance", "FinishResize"),
    NEAR_LIVE_MIGRATION: ("SaveGuest", "LetGuestGoOn"),
}


def stood_still(recipe: str, state: SagaState, steps: Sequence[StepRecord]) -> float | None:
    """Returns for how many seconds the guest of an ended move stood still or was off: 0 if it never stopped.

    Returns None if that is unknown, because the guest went live. The time of a boot does not count. In a move that was rolled
    back, the guest was off until it ran at its source again.
    """
    if recipe not in _OFF:
        # The move ended before its destination was chosen.
        return 0.0 if state is SagaState.FAILED else None
    first, last = _OFF[recipe]
    began = next((step.started_at for step in steps if step.step == first and step.phase is StepPhase.DO), None)
    if began is None:
        return 0.0
    way_back = state is SagaState.FAILED
    name, phase = (first, StepPhase.UNDO) if way_back else (last, StepPhase.DO)
    ended = next((step.ended_at for step in reversed(steps) if step.step == name and step.phase is phase), None)
    return (ended - began).total_seconds() if ended is not None else None
