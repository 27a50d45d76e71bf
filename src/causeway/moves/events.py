"""The events of a server's action that the steps of its moves are, with Nova's names."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Self

from causeway.moves.move_run import Run


@dataclass(frozen=True)
class EventNames:
    """Names of the same event, of a move inside its cell and between cells. None: there is no such event."""

    inside_cell: str | None
    across_cells: str | None

    @classmethod
    def both(cls, name: str) -> Self:
        return cls(name, name)

    def during(self, run: Run, host: str) -> AbstractContextManager[None]:
        """Encloses a part of the present step, and records it as this event of ``host``."""
        name = self.across_cells if run.memory.is_cross_cell else self.inside_cell
        return run.event(name, host) if name is not None else nullcontext()


RESERVE_TARGET = EventNames("compute_prep_resize", "compute_prep_snapshot_based_resize_at_dest")
HAND_OVER = EventNames("compute_resize_instance", "compute_prep_snapshot_based_resize_at_source")
HAND_OVER_UNDONE = EventNames("compute_finish_revert_resize", "compute_restore_at_source")
FINISH_AT_TARGET = EventNames("compute_finish_resize", "compute_finish_snapshot_based_resize_at_dest")
RELEASE_SOURCE = EventNames("compute_confirm_resize", "compute_confirm_snapshot_based_resize_at_source")
DESTROY_AT_TARGET = EventNames("compute_revert_resize", "compute_revert_snapshot_based_resize_at_dest")
RESTORE_AT_SOURCE = EventNames("compute_finish_revert_resize", "compute_finish_revert_snapshot_based_resize_at_source")

CHECK_TARGET_LIVE = EventNames.both("compute_check_can_live_migrate_destination")
PREPARE_TARGET_LIVE = EventNames.both("compute_pre_live_migration")
SAVE_GUEST = EventNames.both("compute_live_migration")
SAVE_GUEST_UNDONE = EventNames.both("compute_rollback_live_migration_at_source")
WAKE_GUEST = EventNames.both("compute_wake_guest_at_destination")
RELEASE_SOURCE_LIVE = EventNames(None, "compute_post_live_migration")
