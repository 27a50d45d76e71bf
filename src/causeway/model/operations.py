"""Operations: long work on servers, its kinds, and the server's task meanwhile.

An operation is a saga that works on a server (`causeway.sagas`). The names of recipes are here. Some operations are *moves*
(`causeway.moves`). A move, an evacuation and a live migration each have a migration.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from causeway.model import server_actions
from causeway.model.exclusion import Rule, Work, rule
from causeway.model.sagas import Saga, SagaState, StepRecord
from causeway.model.states import MigrationStatus, TaskState


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

OF_DEVICES = frozenset({ATTACH_VOLUME, DETACH_VOLUME, ATTACH_INTERFACE, DETACH_INTERFACE})

# Those for which an image's record is made before they are accepted; others may name an image that a server needs.
MAKE_IMAGE = frozenset({CREATE_IMAGE, CREATE_VOLUME_IMAGE, CREATE_BACKUP, SHELVE})

# Operations for which later operations of the server do not wait. A delete requests a confirm and waits for it, so the confirm
# must not wait for the delete. Requests that an attach or detach excludes are refused instead (`exclusion`).
NOT_WAITED_FOR = OF_DEVICES | {DELETE}

# recipe -> the task of the server from the request's acceptance on; None for no task.
TASKS: dict[str, TaskState | None] = {
    RESIZE: server_actions.RESIZE.begins,
    CONFIRM_RESIZE: server_actions.CONFIRM_RESIZE.begins,
    REVERT_RESIZE: server_actions.REVERT_RESIZE.begins,
    CREATE_IMAGE: server_actions.CREATE_IMAGE.begins,
    CREATE_VOLUME_IMAGE: server_actions.CREATE_IMAGE.begins,
    CREATE_BACKUP: server_actions.CREATE_BACKUP.begins,
    REBUILD: server_actions.REBUILD.begins,
    REBUILD_VOLUME: server_actions.REBUILD.begins,
    EVACUATE: server_actions.EVACUATE.begins,
    LIVE_MIGRATION: server_actions.LIVE_MIGRATION.begins,
    NEAR_LIVE_MIGRATION: server_actions.LIVE_MIGRATION.begins,
    MOVE_RECORDS: server_actions.MOVE_RECORDS.begins,
    SHELVE: server_actions.SHELVE.begins,
    SHELVE_OFFLOAD: server_actions.SHELVE_OFFLOAD.begins,
    UNSHELVE: server_actions.UNSHELVE.begins,
    UNSHELVE_ACROSS_CELLS: server_actions.UNSHELVE.begins,
    SOFT_DELETE: server_actions.SOFT_DELETE.begins,
    RESTORE: server_actions.RESTORE.begins,
    RESCUE: server_actions.RESCUE.begins,
    UNRESCUE: server_actions.UNRESCUE.begins,
    SWAP_VOLUME: server_actions.SWAP_VOLUME.begins,
    SNAPSHOT_VOLUME: server_actions.SNAPSHOT_VOLUME.begins,
    MERGE_VOLUME_FILES: server_actions.SNAPSHOT_VOLUME.begins,
    REFRESH_ATTACHMENT: server_actions.REFRESH_ATTACHMENT.begins,
    ATTACH_VOLUME: server_actions.ATTACH_VOLUME.begins,
    DETACH_VOLUME: server_actions.DETACH_VOLUME.begins,
    ATTACH_INTERFACE: server_actions.ATTACH_INTERFACE.begins,
    DETACH_INTERFACE: server_actions.DETACH_INTERFACE.begins,
    BUILD: TaskState.SCHEDULING,
    DELETE: TaskState.DELETING,
}
TASKS |= {former: TASKS[present] for former, present in OF_0_1_0.items()}

# recipe -> the migration's status from the request's acceptance on, of recipes that follow a finished move.
MIGRATION_STATUS = {CONFIRM_RESIZE: MigrationStatus.CONFIRMING, REVERT_RESIZE: MigrationStatus.REVERTING}

# recipe -> tasks of other work that the server may keep instead, if the request came beside that work.
KEPT_TASKS: dict[str, frozenset[TaskState | None]] = dict.fromkeys(
    (SNAPSHOT_VOLUME, MERGE_VOLUME_FILES), server_actions.SNAPSHOT_FOR_IMAGE.task or frozenset()
)

# recipe -> its kind of work, for the table of exclusions.
WORK: dict[str, Work] = {
    BUILD: Work.BUILD,
    DELETE: Work.DELETE,
    RESIZE: Work.MOVE,
    CONFIRM_RESIZE: Work.CONFIRM,
    REVERT_RESIZE: Work.REVERT,
    CREATE_IMAGE: Work.IMAGE,
    CREATE_VOLUME_IMAGE: Work.VOLUME_IMAGE,
    CREATE_BACKUP: Work.IMAGE,
    REBUILD: Work.REBUILD,
    REBUILD_VOLUME: Work.REBUILD,
    EVACUATE: Work.EVACUATE,
    LIVE_MIGRATION: Work.MOVE,
    NEAR_LIVE_MIGRATION: Work.MOVE,
    MOVE_RECORDS: Work.MOVE,
    SHELVE: Work.SHELVE,
    SHELVE_OFFLOAD: Work.SHELVE,
    UNSHELVE: Work.UNSHELVE,
    UNSHELVE_ACROSS_CELLS: Work.UNSHELVE,
    SOFT_DELETE: Work.SOFT_DELETE,
    RESTORE: Work.SOFT_DELETE,
    RESCUE: Work.RESCUE,
    UNRESCUE: Work.RESCUE,
    SWAP_VOLUME: Work.VOLUME,
    SNAPSHOT_VOLUME: Work.SNAPSHOT,
    MERGE_VOLUME_FILES: Work.SNAPSHOT,
    REFRESH_ATTACHMENT: Work.VOLUME,
    ATTACH_VOLUME: Work.DEVICE,
    DETACH_VOLUME: Work.DEVICE,
    ATTACH_INTERFACE: Work.DEVICE,
    DETACH_INTERFACE: Work.DEVICE,
}
WORK |= {former: WORK[present] for former, present in OF_0_1_0.items()}

# Recipes that may begin during the image of a server on a volume, which waits for them. (Nothing is under way at a build.)
BESIDE_VOLUME_IMAGE = frozenset(
    recipe
    for recipe, work in WORK.items()
    if work is not Work.BUILD and rule(work, WORK[CREATE_VOLUME_IMAGE]) is Rule.BESIDE
)

# The names of the actions that request them.
ACTIONS = tuple(
    action.name
    for action in (
        server_actions.RESIZE,
        server_actions.MIGRATE,
        server_actions.CONFIRM_RESIZE,
        server_actions.REVERT_RESIZE,
        server_actions.CREATE_IMAGE,
        server_actions.CREATE_BACKUP,
        server_actions.REBUILD,
        server_actions.EVACUATE,
        server_actions.LIVE_MIGRATION,
        server_actions.SHELVE,
        server_actions.SHELVE_OFFLOAD,
        server_actions.UNSHELVE,
        server_actions.SOFT_DELETE,
        server_actions.RESTORE,
        server_actions.RESCUE,
        server_actions.UNRESCUE,
        server_actions.SWAP_VOLUME,
        server_actions.SNAPSHOT_VOLUME,
        server_actions.REFRESH_ATTACHMENT,
    )
)
