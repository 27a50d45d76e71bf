"""What may be done to servers in which state. Source: Compute API guide, "Server concepts"."""

from __future__ import annotations

from typing import NamedTuple

from causeway.model.states import TaskState, VmState

IDLE: frozenset[TaskState | None] = frozenset({None})


class ServerAction(NamedTuple):
    """``name``: the action's name in records and messages; ``begins``: the task state while it is done."""

    name: str
    vm: frozenset[VmState]
    begins: TaskState
    # The task states in which it may begin; None: any.
    task: frozenset[TaskState | None] | None = IDLE


def _action(name: str, begins: TaskState, *vm: VmState) -> ServerAction:
    return ServerAction(name, frozenset(vm), begins)


_WITH_GUEST = (VmState.ACTIVE, VmState.STOPPED, VmState.PAUSED, VmState.SUSPENDED)

PAUSE = _action("pause", TaskState.PAUSING, VmState.ACTIVE)
UNPAUSE = _action("unpause", TaskState.UNPAUSING, VmState.PAUSED)
SUSPEND = _action("suspend", TaskState.SUSPENDING, VmState.ACTIVE)
RESUME = _action("resume", TaskState.RESUMING, VmState.SUSPENDED)
REBUILD = _action("rebuild", TaskState.REBUILDING, VmState.ACTIVE, VmState.STOPPED, VmState.ERROR)
EVACUATE = ServerAction(
    "evacuate", frozenset({VmState.ACTIVE, VmState.STOPPED, VmState.ERROR}), TaskState.REBUILDING, None
)
CREATE_IMAGE = _action("createImage", TaskState.IMAGE_SNAPSHOT_PENDING, *_WITH_GUEST)
CREATE_BACKUP = _action("createBackup", TaskState.IMAGE_BACKUP, *_WITH_GUEST)
SHELVE = _action("shelve", TaskState.SHELVING, *_WITH_GUEST)
SHELVE_OFFLOAD = _action("shelveOffload", TaskState.SHELVING_OFFLOADING, VmState.SHELVED)
UNSHELVE = _action("unshelve", TaskState.UNSHELVING, VmState.SHELVED, VmState.SHELVED_OFFLOADED)
