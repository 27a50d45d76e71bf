"""What may be done to servers in which state. Source: Compute API guide, "Server concepts"."""

from __future__ import annotations

from typing import NamedTuple

from causeway.model.exclusion import Work, tasks_beside
from causeway.model.states import TaskState, VmState


class ServerAction(NamedTuple):
    """``name``: the action's name in records and messages; ``begins``: the task state while it is done; None: it has none."""

    name: str
    vm: frozenset[VmState]
    begins: TaskState | None
    # The task states in which it may begin; None: any.
    task: frozenset[TaskState | None] | None


def _action(work: Work, name: str, begins: TaskState | None, *vm: VmState) -> ServerAction:
    return ServerAction(name, frozenset(vm), begins, tasks_beside(work))


_WITH_GUEST = (VmState.ACTIVE, VmState.STOPPED, VmState.PAUSED, VmState.SUSPENDED)

PAUSE = _action(Work.GUEST, "pause", TaskState.PAUSING, VmState.ACTIVE)
UNPAUSE = _action(Work.GUEST, "unpause", TaskState.UNPAUSING, VmState.PAUSED)
SUSPEND = _action(Work.GUEST, "suspend", TaskState.SUSPENDING, VmState.ACTIVE)
RESUME = _action(Work.GUEST, "resume", TaskState.RESUMING, VmState.SUSPENDED)
CHANGE_PASSWORD = _action(Work.GUEST, "changePassword", TaskState.UPDATING_PASSWORD, VmState.ACTIVE)
# Without a task: it is over at once.
TRIGGER_CRASH_DUMP = _action(
    Work.GUEST,
    "trigger_crash_dump",
    None,
    VmState.ACTIVE,
    VmState.PAUSED,
    VmState.RESCUED,
    VmState.RESIZED,
    VmState.ERROR,
)
RESCUE = _action(Work.RESCUE, "rescue", TaskState.RESCUING, VmState.ACTIVE, VmState.STOPPED, VmState.ERROR)
UNRESCUE = _action(Work.RESCUE, "unrescue", TaskState.UNRESCUING, VmState.RESCUED)
REBUILD = _action(Work.REBUILD, "rebuild", TaskState.REBUILDING, VmState.ACTIVE, VmState.STOPPED, VmState.ERROR)
# Whatever task the dead host has left: what works on the server is in the journal.
EVACUATE = ServerAction(
    "evacuate", frozenset({VmState.ACTIVE, VmState.STOPPED, VmState.ERROR}), TaskState.REBUILDING, None
)
CREATE_IMAGE = _action(Work.IMAGE, "createImage", TaskState.IMAGE_SNAPSHOT_PENDING, *_WITH_GUEST)
CREATE_BACKUP = _action(Work.IMAGE, "createBackup", TaskState.IMAGE_BACKUP, *_WITH_GUEST)
SHELVE = _action(Work.SHELVE, "shelve", TaskState.SHELVING, *_WITH_GUEST)
SHELVE_OFFLOAD = _action(Work.SHELVE, "shelveOffload", TaskState.SHELVING_OFFLOADING, VmState.SHELVED)
# Drains ask for it, of servers whose host is dead, and which have everything on volumes.
OFFLOAD_FROM_DEAD_HOST = _action(
    Work.SHELVE,
    "evacuate",
    TaskState.SHELVING_OFFLOADING,
    VmState.ACTIVE,
    VmState.STOPPED,
    VmState.PAUSED,
    VmState.ERROR,
)
UNSHELVE = _action(Work.UNSHELVE, "unshelve", TaskState.UNSHELVING, VmState.SHELVED, VmState.SHELVED_OFFLOADED)
# Block storage asks for these two; in the field they give the server no task.
SWAP_VOLUME = _action(
    Work.VOLUME, "swap_volume", TaskState.SWAPPING_VOLUME, VmState.ACTIVE, VmState.PAUSED, VmState.RESIZED
)
SNAPSHOT_VOLUME = _action(
    Work.VOLUME,
    "volume_snapshot",
    TaskState.SNAPSHOTTING_VOLUME,
    VmState.ACTIVE,
    VmState.PAUSED,
    VmState.STOPPED,
    VmState.RESIZED,
)
# Operators ask for it by a command.
REFRESH_ATTACHMENT = _action(Work.VOLUME, "refresh_volume_attachment", TaskState.REFRESHING_ATTACHMENT, VmState.STOPPED)
# In the field's history a delete that is put off is a delete.
SOFT_DELETE = _action(Work.SOFT_DELETE, "delete", TaskState.SOFT_DELETING, *_WITH_GUEST, VmState.RESCUED)
RESTORE = _action(Work.SOFT_DELETE, "restore", TaskState.RESTORING, VmState.SOFT_DELETED)
# Its name in messages; its record has another one.
LIVE_MIGRATE = _action(Work.MOVE, "os-migrateLive", TaskState.MIGRATING, VmState.ACTIVE, VmState.PAUSED)
LIVE_MIGRATION = LIVE_MIGRATE._replace(name="live-migration")
# Drains ask for it: users are refused, as in the field.
MIGRATE_SUSPENDED = _action(Work.MOVE, LIVE_MIGRATION.name, TaskState.MIGRATING, VmState.SUSPENDED)
# Drains ask for it, of servers without a host.
MOVE_RECORDS = _action(Work.MOVE, "migrate", TaskState.MIGRATING, VmState.SHELVED_OFFLOADED, VmState.ERROR)
