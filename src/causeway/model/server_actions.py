"""The actions that users, drains and other services may request for a server: a row for each.

A row says in which states the action is refused, and how the server's state changes. The API checks requests against it, and
records their beginning (`causeway.api.servers.loading`). A `GuestAction` is an action that the conductor has a host do at once;
its row also has the end (`causeway.conductor.endpoints.power`). All others are operations of the journal, whose recipes have
the rest.

Source: Compute API guide, "Server concepts"; Compute API reference, "Servers - run an action".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Self

from causeway.model.exclusion import Work, tasks_beside
from causeway.model.states import SHELVED, TaskState, VmState


class HostCheck(Enum):
    """When a request is refused because the server has no host. Nova's order differs between actions."""

    BEFORE_STATES = auto()
    AFTER_STATES = auto()
    #: no host is needed, or the handler checks more before
    BY_HANDLER = auto()


@dataclass(frozen=True, kw_only=True)
class ServerAction:
    #: its name in the server's history, and in messages
    name: str
    #: vm states in which it may begin; None for any
    vm: frozenset[VmState] | None
    #: task states in which it may begin; None for any
    task: frozenset[TaskState | None] | None
    #: the server's task state from then on; None to keep the present one
    begins: TaskState | None = None
    #: whether users are refused while the server is locked
    lockable: bool = True
    #: whether servers with a TPM are refused: its state stays on its host, or would be deleted with the disks
    refuses_tpm: bool = False
    host: HostCheck = HostCheck.AFTER_STATES

    def allows(self, vm_state: VmState) -> bool:
        return self.vm is None or vm_state in self.vm

    def without(self, *vm: VmState) -> Self:
        """The same action, refused in some more states."""
        return replace(self, vm=None if self.vm is None else self.vm - set(vm))

    @property
    def task_change(self) -> dict[str, TaskState]:
        """The change of the server's record when the action begins."""
        return {} if self.begins is None else {"task_state": self.begins}


@dataclass(frozen=True, kw_only=True)
class GuestAction(ServerAction):
    """An action that the conductor has the server's host do at once, without an operation."""

    #: of the action, in the server's history
    event: str
    #: the name of its notifications (``instance.NAME.start``, ``.end``); None: Nova has none
    notification: str | None
    #: the vm state after success; None: as before
    becomes: VmState | None = None
    #: the vm state after a failure; None: as before. The task ends either way
    after_failure: VmState | None = None
    #: task states that the server may have until the end; with another one it was deleted or reset meanwhile
    meanwhile: frozenset[TaskState] = frozenset()
    #: the guest may run afterwards that did not before
    starts: bool = False


_WITH_GUEST = (VmState.ACTIVE, VmState.STOPPED, VmState.PAUSED, VmState.SUSPENDED)
_WITH_DEVICES = (VmState.ACTIVE, VmState.PAUSED, VmState.STOPPED)


def _action(
    name: str,
    work: Work,
    begins: TaskState | None,
    *vm: VmState,
    lockable: bool = True,
    refuses_tpm: bool = False,
    host: HostCheck = HostCheck.AFTER_STATES,
) -> ServerAction:
    """A row of an action that may begin beside what `exclusion` allows beside ``work``."""
    return ServerAction(
        name=name,
        vm=frozenset(vm),
        task=tasks_beside(work),
        begins=begins,
        lockable=lockable,
        refuses_tpm=refuses_tpm,
        host=host,
    )


def _on_guest(
    name: str,
    work: Work,
    begins: TaskState | None,
    *vm: VmState,
    event: str,
    notification: str | None,
    becomes: VmState | None = None,
    host: HostCheck = HostCheck.AFTER_STATES,
    starts: bool = False,
) -> GuestAction:
    return GuestAction(
        name=name,
        vm=frozenset(vm),
        task=tasks_beside(work),
        begins=begins,
        host=host,
        event=event,
        notification=notification,
        becomes=becomes,
        meanwhile=frozenset() if begins is None else frozenset({begins}),
        starts=starts,
    )


# Actions that the conductor has the server's host do at once.

START = _on_guest(
    "start",
    Work.POWER,
    TaskState.POWERING_ON,
    VmState.STOPPED,
    event="compute_start_instance",
    notification="power_on",
    becomes=VmState.ACTIVE,
    host=HostCheck.BEFORE_STATES,
    starts=True,
)
STOP = _on_guest(
    "stop",
    Work.POWER,
    TaskState.POWERING_OFF,
    *(VmState.ACTIVE, VmState.ERROR),
    event="compute_stop_instance",
    notification="power_off",
    becomes=VmState.STOPPED,
    host=HostCheck.BEFORE_STATES,
)
REBOOT = GuestAction(
    name="reboot",
    vm=frozenset({VmState.ACTIVE}),
    task=tasks_beside(Work.GUEST),
    begins=TaskState.REBOOTING,
    host=HostCheck.BEFORE_STATES,
    event="compute_reboot_instance",
    notification="reboot",
    becomes=VmState.ACTIVE,
    starts=True,
    # A guest that could not be rebooted is in an unknown state.
    after_failure=VmState.ERROR,
    # A hard reboot may have interrupted a soft one.
    meanwhile=frozenset(
        {
            TaskState.REBOOTING,
            TaskState.REBOOTING_HARD,
            TaskState.REBOOT_PENDING,
            TaskState.REBOOT_STARTED,
            TaskState.REBOOT_PENDING_HARD,
            TaskState.REBOOT_STARTED_HARD,
        }
    ),
)
HARD_REBOOT = replace(
    REBOOT,
    vm=frozenset({*_WITH_GUEST, VmState.ERROR}),
    # As in Nova, it does not interrupt a change of the password.
    task=tasks_beside(Work.HARD_REBOOT) - {TaskState.UPDATING_PASSWORD},
    begins=TaskState.REBOOTING_HARD,
)
PAUSE = _on_guest(
    "pause",
    Work.GUEST,
    TaskState.PAUSING,
    VmState.ACTIVE,
    event="compute_pause_instance",
    notification="pause",
    becomes=VmState.PAUSED,
)
UNPAUSE = _on_guest(
    "unpause",
    Work.GUEST,
    TaskState.UNPAUSING,
    VmState.PAUSED,
    event="compute_unpause_instance",
    notification="unpause",
    becomes=VmState.ACTIVE,
    starts=True,
)
SUSPEND = _on_guest(
    "suspend",
    Work.GUEST,
    TaskState.SUSPENDING,
    VmState.ACTIVE,
    event="compute_suspend_instance",
    notification="suspend",
    becomes=VmState.SUSPENDED,
)
RESUME = _on_guest(
    "resume",
    Work.GUEST,
    TaskState.RESUMING,
    VmState.SUSPENDED,
    event="compute_resume_instance",
    notification="resume",
    becomes=VmState.ACTIVE,
    starts=True,
)
CHANGE_PASSWORD = _on_guest(
    "changePassword",
    Work.GUEST,
    TaskState.UPDATING_PASSWORD,
    VmState.ACTIVE,
    event="compute_set_admin_password",
    notification=None,
)
# It ends at once, so it gives the server no task.
TRIGGER_CRASH_DUMP = _on_guest(
    "trigger_crash_dump",
    Work.GUEST,
    None,
    *(VmState.ACTIVE, VmState.PAUSED, VmState.RESCUED, VmState.RESIZED, VmState.ERROR),
    event="compute_trigger_crash_dump",
    notification="trigger_crash_dump",
)
# Ours. A task would refuse users a stop, and drains a move, for the sake of what guests also do by themselves; and APIs of the
# release before could not read it.
GUEST_TRIM = _on_guest("guest_trim", Work.GUEST, None, VmState.ACTIVE, event="compute_trim_guest", notification=None)

# Actions that only change the record. The handlers have the rules for locked servers.

LOCK = ServerAction(name="lock", vm=None, task=None, lockable=False, host=HostCheck.BY_HANDLER)
UNLOCK = replace(LOCK, name="unlock")

# Operations of the journal.

RESIZE = _action("resize", Work.MOVE, TaskState.RESIZE_PREP, VmState.ACTIVE, VmState.STOPPED)
MIGRATE = replace(RESIZE, name="migrate")
CONFIRM_RESIZE = ServerAction(
    name="confirmResize",
    vm=frozenset({VmState.RESIZED}),
    # A delete confirms the resize itself, without the API.
    task=tasks_beside(Work.CONFIRM) - {TaskState.DELETING},
    host=HostCheck.BY_HANDLER,
)
REVERT_RESIZE = _action(
    "revertResize", Work.REVERT, TaskState.RESIZE_REVERTING, VmState.RESIZED, host=HostCheck.BY_HANDLER
)
# The name is for messages. The record of the action has another one.
LIVE_MIGRATE = _action("os-migrateLive", Work.MOVE, TaskState.MIGRATING, VmState.ACTIVE, VmState.PAUSED)
LIVE_MIGRATION = replace(LIVE_MIGRATE, name="live-migration")
# For drains. Users are refused, as in Nova.
MIGRATE_SUSPENDED = _action(LIVE_MIGRATION.name, Work.MOVE, TaskState.MIGRATING, VmState.SUSPENDED)
# For drains, and servers without a host.
MOVE_RECORDS = _action("migrate", Work.MOVE, TaskState.MIGRATING, VmState.SHELVED_OFFLOADED, VmState.ERROR)
RESCUE = _action(
    "rescue",
    Work.RESCUE,
    TaskState.RESCUING,
    *(VmState.ACTIVE, VmState.STOPPED, VmState.ERROR),
    refuses_tpm=True,
)
UNRESCUE = _action("unrescue", Work.RESCUE, TaskState.UNRESCUING, VmState.RESCUED)
REBUILD = _action(
    "rebuild",
    Work.REBUILD,
    TaskState.REBUILDING,
    *(VmState.ACTIVE, VmState.STOPPED, VmState.ERROR),
    refuses_tpm=True,
)
EVACUATE = ServerAction(
    name="evacuate",
    vm=frozenset({VmState.ACTIVE, VmState.STOPPED, VmState.ERROR}),
    # With any task, which the dead host may have left: the journal has the operations that work on the server.
    task=None,
    begins=TaskState.REBUILDING,
    lockable=False,
    refuses_tpm=True,
)
CREATE_IMAGE = _action("createImage", Work.IMAGE, TaskState.IMAGE_SNAPSHOT_PENDING, *_WITH_GUEST, lockable=False)
CREATE_BACKUP = _action("createBackup", Work.IMAGE, TaskState.IMAGE_BACKUP, *_WITH_GUEST)
SHELVE = _action("shelve", Work.SHELVE, TaskState.SHELVING, *_WITH_GUEST, refuses_tpm=True)
SHELVE_OFFLOAD = _action("shelveOffload", Work.SHELVE, TaskState.SHELVING_OFFLOADING, VmState.SHELVED)
# For drains, and servers whose host is dead and whose disks are volumes.
OFFLOAD_FROM_DEAD_HOST = _action(
    "evacuate",
    Work.SHELVE,
    TaskState.SHELVING_OFFLOADING,
    *(VmState.ACTIVE, VmState.STOPPED, VmState.PAUSED, VmState.ERROR),
)
UNSHELVE = _action("unshelve", Work.UNSHELVE, TaskState.UNSHELVING, *SHELVED, host=HostCheck.BY_HANDLER)
# In Nova's history, a deferred delete is a delete.
SOFT_DELETE = _action("delete", Work.SOFT_DELETE, TaskState.SOFT_DELETING, *_WITH_GUEST, VmState.RESCUED)
RESTORE = _action("restore", Work.SOFT_DELETE, TaskState.RESTORING, VmState.SOFT_DELETED)
ATTACH_INTERFACE = _action("attach_interface", Work.DEVICE, None, *_WITH_DEVICES)
DETACH_INTERFACE = _action("detach_interface", Work.DEVICE, None, *_WITH_DEVICES, host=HostCheck.BY_HANDLER)
ATTACH_VOLUME = _action(
    "attach_volume",
    Work.DEVICE,
    None,
    *(*_WITH_DEVICES, VmState.RESIZED, VmState.SOFT_DELETED, *SHELVED),
    host=HostCheck.BY_HANDLER,
)
DETACH_VOLUME = replace(ATTACH_VOLUME, name="detach_volume")
# Block storage requests these two. In Nova they give the server no task.
SWAP_VOLUME = _action(
    "swap_volume",
    Work.VOLUME,
    TaskState.SWAPPING_VOLUME,
    *(VmState.ACTIVE, VmState.PAUSED, VmState.RESIZED),
    host=HostCheck.BY_HANDLER,
)
SNAPSHOT_VOLUME = _action(
    "volume_snapshot",
    Work.SNAPSHOT,
    TaskState.SNAPSHOTTING_VOLUME,
    *(VmState.ACTIVE, VmState.PAUSED, VmState.STOPPED, VmState.RESIZED),
    lockable=False,
)
# The image of a server on a volume asks block storage for snapshots, which requests this. The server keeps the image's task.
SNAPSHOT_FOR_IMAGE = replace(SNAPSHOT_VOLUME, task=frozenset({TaskState.IMAGE_SNAPSHOT_PENDING}), begins=None)
# Operators request it with a command.
REFRESH_ATTACHMENT = _action("refresh_volume_attachment", Work.VOLUME, TaskState.REFRESHING_ATTACHMENT, VmState.STOPPED)
