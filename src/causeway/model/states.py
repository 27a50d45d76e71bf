"""States of servers and migrations, their allowed transitions, and the status that users see.

Source of the values and of the status table: the Compute API reference ("Server status") and the API guide.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum


class VmState(StrEnum):
    ACTIVE = "active"
    BUILDING = "building"
    PAUSED = "paused"
    SUSPENDED = "suspended"
    STOPPED = "stopped"
    RESCUED = "rescued"
    RESIZED = "resized"
    SOFT_DELETED = "soft-delete"
    DELETED = "deleted"
    ERROR = "error"
    SHELVED = "shelved"
    SHELVED_OFFLOADED = "shelved_offloaded"


#: the states of shelved servers
SHELVED = (VmState.SHELVED, VmState.SHELVED_OFFLOADED)


class TaskState(StrEnum):
    SCHEDULING = "scheduling"
    BLOCK_DEVICE_MAPPING = "block_device_mapping"
    NETWORKING = "networking"
    SPAWNING = "spawning"
    RESIZE_PREP = "resize_prep"
    RESIZE_MIGRATING = "resize_migrating"
    RESIZE_MIGRATED = "resize_migrated"
    RESIZE_FINISH = "resize_finish"
    RESIZE_REVERTING = "resize_reverting"
    POWERING_OFF = "powering-off"
    POWERING_ON = "powering-on"
    REBOOTING = "rebooting"
    REBOOT_PENDING = "reboot_pending"
    REBOOT_STARTED = "reboot_started"
    REBOOTING_HARD = "rebooting_hard"
    REBOOT_PENDING_HARD = "reboot_pending_hard"
    REBOOT_STARTED_HARD = "reboot_started_hard"
    PAUSING = "pausing"
    UNPAUSING = "unpausing"
    SUSPENDING = "suspending"
    RESUMING = "resuming"
    IMAGE_SNAPSHOT_PENDING = "image_snapshot_pending"
    IMAGE_SNAPSHOT = "image_snapshot"
    IMAGE_PENDING_UPLOAD = "image_pending_upload"
    IMAGE_UPLOADING = "image_uploading"
    IMAGE_BACKUP = "image_backup"
    REBUILDING = "rebuilding"
    REBUILD_BLOCK_DEVICE_MAPPING = "rebuild_block_device_mapping"
    REBUILD_SPAWNING = "rebuild_spawning"
    MIGRATING = "migrating"
    DELETING = "deleting"
    SOFT_DELETING = "soft-deleting"
    RESTORING = "restoring"
    RESCUING = "rescuing"
    UNRESCUING = "unrescuing"
    UPDATING_PASSWORD = "updating_password"
    SHELVING = "shelving"
    SHELVING_OFFLOADING = "shelving_offloading"
    UNSHELVING = "unshelving"
    # Ours: in Nova a server has no task during work on its volumes; for the last of these it is locked.
    SWAPPING_VOLUME = "swapping_volume"
    SNAPSHOTTING_VOLUME = "snapshotting_volume"
    REFRESHING_ATTACHMENT = "refreshing_attachment"


DELETING = frozenset({TaskState.DELETING, TaskState.SOFT_DELETING})
# Tasks that moves set. The journal has the move before.
RESIZE_TASKS = frozenset(
    {TaskState.RESIZE_PREP, TaskState.RESIZE_MIGRATING, TaskState.RESIZE_MIGRATED, TaskState.RESIZE_FINISH}
)
MOVE_TASKS = RESIZE_TASKS | {TaskState.RESIZE_REVERTING}


class PowerState(IntEnum):
    """Numbers as REST shows them; notifications use the names in lower case."""

    NOSTATE = 0
    RUNNING = 1
    PAUSED = 3
    SHUTDOWN = 4
    CRASHED = 6
    SUSPENDED = 7


class MigrationStatus(StrEnum):
    # Evacuations have these too: done at the target, then cleaned up at the source when it came back.
    ACCEPTED = "accepted"
    DONE = "done"
    COMPLETED = "completed"
    # Live migrations are accepted before these, and completed afterwards.
    QUEUED = "queued"
    PREPARING = "preparing"
    RUNNING = "running"
    # The guest runs at its target, and the rest of its memory follows.
    RUNNING_POST_COPY = "running (post-copy)"
    PRE_MIGRATING = "pre-migrating"
    MIGRATING = "migrating"
    POST_MIGRATING = "post-migrating"
    FINISHED = "finished"
    CONFIRMING = "confirming"
    CONFIRMED = "confirmed"
    REVERTING = "reverting"
    REVERTED = "reverted"
    CANCELLED = "cancelled"
    ERROR = "error"
    FAILED = "failed"


# Staying in a status is always allowed: a step that is repeated after a crash sets it again.
MIGRATION_TRANSITIONS: dict[MigrationStatus, frozenset[MigrationStatus]] = {
    MigrationStatus.PRE_MIGRATING: frozenset(
        {MigrationStatus.MIGRATING, MigrationStatus.CANCELLED, MigrationStatus.ERROR, MigrationStatus.FAILED}
    ),
    # Back to the beginning: it was rolled back for a passing reason, and is tried once more.
    MigrationStatus.MIGRATING: frozenset(
        {
            MigrationStatus.POST_MIGRATING,
            MigrationStatus.PRE_MIGRATING,
            MigrationStatus.CANCELLED,
            MigrationStatus.ERROR,
            MigrationStatus.FAILED,
        }
    ),
    MigrationStatus.POST_MIGRATING: frozenset(
        {
            MigrationStatus.FINISHED,
            MigrationStatus.PRE_MIGRATING,
            MigrationStatus.CANCELLED,
            MigrationStatus.ERROR,
            MigrationStatus.FAILED,
        }
    ),
    MigrationStatus.FINISHED: frozenset(
        {MigrationStatus.CONFIRMING, MigrationStatus.REVERTING, MigrationStatus.ERROR, MigrationStatus.FAILED}
    ),
    # A confirm or revert that fails before its pivot restores the server to how it was: resized, to be tried again.
    MigrationStatus.CONFIRMING: frozenset(
        {MigrationStatus.CONFIRMED, MigrationStatus.FINISHED, MigrationStatus.ERROR, MigrationStatus.FAILED}
    ),
    MigrationStatus.REVERTING: frozenset(
        {MigrationStatus.REVERTED, MigrationStatus.FINISHED, MigrationStatus.ERROR, MigrationStatus.FAILED}
    ),
    MigrationStatus.ACCEPTED: frozenset(
        {
            MigrationStatus.DONE,
            MigrationStatus.QUEUED,
            # A migration to another cell does not wait for its turn.
            MigrationStatus.PREPARING,
            MigrationStatus.CANCELLED,
            MigrationStatus.ERROR,
            MigrationStatus.FAILED,
        }
    ),
    MigrationStatus.QUEUED: frozenset(
        {MigrationStatus.PREPARING, MigrationStatus.CANCELLED, MigrationStatus.ERROR, MigrationStatus.FAILED}
    ),
    MigrationStatus.PREPARING: frozenset(
        {MigrationStatus.RUNNING, MigrationStatus.CANCELLED, MigrationStatus.ERROR, MigrationStatus.FAILED}
    ),
    MigrationStatus.RUNNING: frozenset(
        {
            MigrationStatus.RUNNING_POST_COPY,
            MigrationStatus.COMPLETED,
            MigrationStatus.CANCELLED,
            MigrationStatus.ERROR,
            MigrationStatus.FAILED,
        }
    ),
    # Its guest may turn out to be lost.
    MigrationStatus.RUNNING_POST_COPY: frozenset(
        {MigrationStatus.COMPLETED, MigrationStatus.CANCELLED, MigrationStatus.ERROR, MigrationStatus.FAILED}
    ),
    MigrationStatus.DONE: frozenset({MigrationStatus.COMPLETED}),
    MigrationStatus.COMPLETED: frozenset(),
    MigrationStatus.CONFIRMED: frozenset(),
    MigrationStatus.REVERTED: frozenset(),
    MigrationStatus.CANCELLED: frozenset(),
    MigrationStatus.ERROR: frozenset({MigrationStatus.FAILED}),
    MigrationStatus.FAILED: frozenset(),
}

MIGRATION_ENDED = frozenset(
    {
        MigrationStatus.CONFIRMED,
        MigrationStatus.REVERTED,
        MigrationStatus.ERROR,
        MigrationStatus.FAILED,
        MigrationStatus.CANCELLED,
        MigrationStatus.COMPLETED,
    }
)


class ServerStatus(StrEnum):
    """The ``status`` of the Compute API."""

    ACTIVE = "ACTIVE"
    BUILD = "BUILD"
    DELETED = "DELETED"
    ERROR = "ERROR"
    HARD_REBOOT = "HARD_REBOOT"
    MIGRATING = "MIGRATING"
    PASSWORD = "PASSWORD"
    PAUSED = "PAUSED"
    REBOOT = "REBOOT"
    REBUILD = "REBUILD"
    RESCUE = "RESCUE"
    RESIZE = "RESIZE"
    REVERT_RESIZE = "REVERT_RESIZE"
    SHELVED = "SHELVED"
    SHELVED_OFFLOADED = "SHELVED_OFFLOADED"
    SHUTOFF = "SHUTOFF"
    SOFT_DELETED = "SOFT_DELETED"
    SUSPENDED = "SUSPENDED"
    UNKNOWN = "UNKNOWN"
    VERIFY_RESIZE = "VERIFY_RESIZE"


_RESIZING = dict.fromkeys(
    (TaskState.RESIZE_PREP, TaskState.RESIZE_MIGRATING, TaskState.RESIZE_MIGRATED, TaskState.RESIZE_FINISH),
    ServerStatus.RESIZE,
)
_REBUILDING = dict.fromkeys(
    (TaskState.REBUILDING, TaskState.REBUILD_BLOCK_DEVICE_MAPPING, TaskState.REBUILD_SPAWNING), ServerStatus.REBUILD
)
# The source's record is visible before its guest runs again. Until then the server is still reverting.
_REVERTING = {TaskState.RESIZE_REVERTING: ServerStatus.REVERT_RESIZE}

# vm_state -> (default status, task_state -> status)
STATUS_TABLE: dict[VmState, tuple[ServerStatus, dict[TaskState, ServerStatus]]] = {
    VmState.ACTIVE: (
        ServerStatus.ACTIVE,
        {
            TaskState.REBOOTING: ServerStatus.REBOOT,
            TaskState.REBOOT_PENDING: ServerStatus.REBOOT,
            TaskState.REBOOT_STARTED: ServerStatus.REBOOT,
            TaskState.REBOOTING_HARD: ServerStatus.HARD_REBOOT,
            TaskState.REBOOT_PENDING_HARD: ServerStatus.HARD_REBOOT,
            TaskState.REBOOT_STARTED_HARD: ServerStatus.HARD_REBOOT,
            TaskState.UPDATING_PASSWORD: ServerStatus.PASSWORD,
            TaskState.MIGRATING: ServerStatus.MIGRATING,
        }
        | _REBUILDING
        | _RESIZING
        | _REVERTING,
    ),
    VmState.BUILDING: (ServerStatus.BUILD, {}),
    VmState.STOPPED: (ServerStatus.SHUTOFF, _RESIZING | _REBUILDING | _REVERTING),
    VmState.RESIZED: (ServerStatus.VERIFY_RESIZE, _REVERTING),
    VmState.PAUSED: (ServerStatus.PAUSED, {TaskState.MIGRATING: ServerStatus.MIGRATING}),
    VmState.SUSPENDED: (ServerStatus.SUSPENDED, {}),
    VmState.RESCUED: (ServerStatus.RESCUE, {}),
    VmState.ERROR: (ServerStatus.ERROR, _REBUILDING),
    VmState.DELETED: (ServerStatus.DELETED, {}),
    VmState.SOFT_DELETED: (ServerStatus.SOFT_DELETED, {}),
    VmState.SHELVED: (ServerStatus.SHELVED, {}),
    VmState.SHELVED_OFFLOADED: (ServerStatus.SHELVED_OFFLOADED, {}),
}


def server_status(vm_state: VmState, task_state: TaskState | None) -> ServerStatus:
    """The status that users see for a (vm_state, task_state)."""
    default, by_task = STATUS_TABLE[vm_state]
    return by_task.get(task_state, default) if task_state is not None else default
