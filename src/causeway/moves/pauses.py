"""How long a guest really stood still, or was off, while its server moved: computed from the times of steps in the journal."""

from __future__ import annotations

from collections.abc import Sequence

from causeway.model.operations import NEAR_LIVE_MIGRATION
from causeway.model.sagas import SagaState, StepPhase, StepRecord

# recipe -> the first step that has the guest off or standing still, and the last one.
_OFF = {
    "cross_cell_resize": ("PrepResizeAtSource", "FinishResizeAtDest"),
    "same_cell_resize": ("ResizeInstance", "FinishResize"),
    NEAR_LIVE_MIGRATION: ("SaveGuest", "LetGuestGoOn"),
}


def stood_still(recipe: str, state: SagaState, steps: Sequence[StepRecord]) -> float | None:
    """Returns the seconds for a move that has ended: 0 if the guest never stopped, None if unknown (it went live).

    The boot of a guest does not count. In a move that was rolled back, the guest is off until it runs at its source again.
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
