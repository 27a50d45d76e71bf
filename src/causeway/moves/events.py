"""The events of a server's action that the steps of its moves are, with Nova's names."""

from __future__ import annotations

from dataclasses import dataclass

from causeway.moves.run import Run


@dataclass(frozen=True)
class EventNames:
    """Names of the same event, of a move inside its cell and between cells."""

    inside_cell: str
    across_cells: str


# step -> its event
_EVENTS = {
    "ReserveTarget": EventNames("compute_prep_resize", "compute_prep_snapshot_based_resize_at_dest"),
    "HandOver": EventNames("compute_resize_instance", "compute_prep_snapshot_based_resize_at_source"),
    "FinishAtTarget": EventNames("compute_finish_resize", "compute_finish_snapshot_based_resize_at_dest"),
    "ReleaseSource": EventNames("compute_confirm_resize", "compute_confirm_snapshot_based_resize_at_source"),
    "DestroyAtTarget": EventNames("compute_revert_resize", "compute_revert_snapshot_based_resize_at_dest"),
    "RestoreAtSource": EventNames(
        "compute_finish_revert_resize", "compute_finish_revert_snapshot_based_resize_at_source"
    ),
}
#: when a move is undone after its source has handed the guest over
UNDONE = EventNames("compute_finish_revert_resize", "compute_restore_at_source")


def name_in(run: Run, names: EventNames) -> str:
    return names.across_cells if run.memory.is_cross_cell else names.inside_cell


def event_of(run: Run, step: str) -> str:
    """The name of the event that a step of this move is."""
    return name_in(run, _EVENTS[step])
