"""Operations: long work on servers.

An operation is a saga that works on a server (`causeway.sagas`). The names of recipes are here; `causeway.model.operation_kinds`
has a row for each. Some operations are *moves* (`causeway.moves`). A move, an evacuation and a live migration each have a
migration.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from causeway.model.sagas import Saga, SagaState, StepRecord


@dataclass(kw_only=True)
class Operation(Saga):
    """A run of a recipe (``resize``, ``confirm_resize``, ``shelve``, ...).

    ``migration_uuid``: its own id, if it has no migration.
    """

    migration_uuid: str
    instance_uuid: str
    #: the server's cell when the operation was acquired; not stored
    cell_uuid: str | None = None
    #: the requester as it is stored, when the operation was acquired
    requested_by: dict[str, Any] | None = field(default=None, repr=False, compare=False)
    steps: list[StepRecord] = field(default_factory=list)
    #: why its destination was chosen, until this is written; never read with the operation
    explanation: dict[str, Any] | None = None
    #: the known content of its row; None if unknown
    written: dict[str, Any] | None = field(default=None, repr=False, compare=False)

    @property
    def resource_id(self) -> str | None:
        """The volume or the port that is attached or detached."""
        found: str | None = self.data.get("resource_id")
        return found

    @property
    def is_for_migration(self) -> bool:
        return self.migration_uuid != self.id


@dataclass(kw_only=True)
class OperationBrief:
    """The state of an operation without its memory, for callers that read thousands."""

    id: str
    recipe: str
    state: SagaState
    migration_uuid: str
    instance_uuid: str
    pivoted: bool = False
    cancel_requested: bool = False
    request_id: str | None = None
    error: dict[str, Any] | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None


RESIZE, CONFIRM_RESIZE, REVERT_RESIZE = "resize", "confirm_resize", "revert_resize"
LIVE_MIGRATION = "live_migration"
# What 0.1.0 called them, inside a cell and between cells -> what they are called now. Journals keep the old names.
OF_0_1_0 = {
    "same_cell_resize": RESIZE,
    "cross_cell_resize": RESIZE,
    "same_cell_confirm": CONFIRM_RESIZE,
    "cross_cell_confirm": CONFIRM_RESIZE,
    "same_cell_revert": REVERT_RESIZE,
    "cross_cell_revert": REVERT_RESIZE,
    "cross_cell_live_migration": LIVE_MIGRATION,
}


def present_name(recipe: str) -> str:
    """The present name of a recipe, which may be one of 0.1.0."""
    return OF_0_1_0.get(recipe, recipe)


def with_former_names(*recipes: str) -> tuple[str, ...]:
    """These recipes, and what 0.1.0 called them: for questions to a journal, which may have both."""
    return (*recipes, *(former for former, present in OF_0_1_0.items() if present in recipes))


BUILD, DELETE = "build", "delete"
CREATE_IMAGE, CREATE_BACKUP = "create_image", "create_backup"
CREATE_VOLUME_IMAGE = "create_volume_image"
REBUILD, REBUILD_VOLUME, EVACUATE = "rebuild", "rebuild_volume", "evacuate"
NEAR_LIVE_MIGRATION = "near_live_migration"
MOVE_RECORDS = "move_records"
SHELVE, SHELVE_OFFLOAD, UNSHELVE = "shelve", "shelve_offload", "unshelve"
UNSHELVE_ACROSS_CELLS = "unshelve_across_cells"
SOFT_DELETE, RESTORE = "soft_delete", "restore"
RESCUE, UNRESCUE = "rescue", "unrescue"
ATTACH_VOLUME, DETACH_VOLUME = "attach_volume", "detach_volume"
ATTACH_INTERFACE, DETACH_INTERFACE = "attach_interface", "detach_interface"
SWAP_VOLUME = "swap_volume"
SNAPSHOT_VOLUME, MERGE_VOLUME_FILES = "snapshot_volume", "merge_volume_files"
REFRESH_ATTACHMENT = "refresh_attachment"
