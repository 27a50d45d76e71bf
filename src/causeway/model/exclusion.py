"""What may be done to a server while something else is done to it: one table, from which all refusals (409) come.

What is under way is known from the server's task, and from its operations in the journal. Each is read in the transaction in
which a request is written there, so of two requests one sees the other (`causeway.parts.acceptance`).
"""

from __future__ import annotations

from enum import StrEnum

from causeway.model.states import TaskState


class Work(StrEnum):
    """What is asked for, or under way."""

    BUILD = "build"
    DELETE = "delete"
    MOVE = "resize, cold migrate, live migrate"
    CONFIRM = "confirm"
    REVERT = "revert"
    REBUILD = "rebuild"
    EVACUATE = "evacuate"
    RESCUE = "rescue, unrescue"
    SOFT_DELETE = "soft delete, restore"
    SHELVE = "shelve, offload"
    UNSHELVE = "unshelve"
    IMAGE = "create image, create backup"
    VOLUME_IMAGE = "create image of a server on a volume"
    DEVICE = "attach or detach a volume or a port"
    VOLUME = "swap a volume, refresh of an attachment"
    SNAPSHOT = "assisted snapshot of a volume"
    POWER = "start, stop"
    GUEST = "soft reboot, pause, unpause, suspend, resume, change of a password, crash dump"
    HARD_REBOOT = "hard reboot"
    DEVICE_RECORD = "change what becomes of an attached volume"
    RECORD = "rename, metadata, tags, lock"


class Rule(StrEnum):
    """What becomes of a request."""

    #: accepted; the two run beside each other
    BESIDE = "beside"
    #: refused
    REFUSED = "refused"
    #: accepted; begins when what is under way has ended
    AFTER = "after"
    #: refused while the server has its task. Without one it shows its user that it has ended: accepted, begins when it has
    AT_ITS_END = "at its end"
    #: accepted; what is under way is undone if it has not passed its pivot, and its end is waited for
    INSTEAD = "instead"
    #: refused; what is under way is cancelled, so that it is accepted soon
    CANCELS = "cancels"


_ACCEPTED_BESIDE_TASK = frozenset({Rule.BESIDE, Rule.AFTER, Rule.INSTEAD})
ACCEPTED = _ACCEPTED_BESIDE_TASK | {Rule.AT_ITS_END}

# Operations whose last step takes the task from the server, before it is written down that they have ended.
_AT_THEIR_END: dict[Work, Rule] = dict.fromkeys(
    (
        Work.BUILD,
        Work.MOVE,
        Work.CONFIRM,
        Work.REVERT,
        Work.REBUILD,
        Work.EVACUATE,
        Work.RESCUE,
        Work.SOFT_DELETE,
        Work.SHELVE,
        Work.UNSHELVE,
        Work.IMAGE,
        Work.VOLUME_IMAGE,
        Work.VOLUME,
        Work.SNAPSHOT,
    ),
    Rule.AT_ITS_END,
)

# asked for -> what is not refused. What stands in no row is only under way, or only asked for.
_RULES: dict[Work, dict[Work, Rule]] = {
    Work.DELETE: {
        Work.BUILD: Rule.INSTEAD,
        Work.DELETE: Rule.BESIDE,
        Work.MOVE: Rule.INSTEAD,
        Work.CONFIRM: Rule.AFTER,
        Work.REVERT: Rule.AFTER,
        Work.REBUILD: Rule.INSTEAD,
        Work.EVACUATE: Rule.INSTEAD,
        Work.RESCUE: Rule.INSTEAD,
        Work.SOFT_DELETE: Rule.INSTEAD,
        Work.SHELVE: Rule.INSTEAD,
        Work.UNSHELVE: Rule.INSTEAD,
        Work.IMAGE: Rule.INSTEAD,
        Work.VOLUME_IMAGE: Rule.INSTEAD,
        Work.VOLUME: Rule.INSTEAD,
        Work.SNAPSHOT: Rule.INSTEAD,
        # Theirs is the server's host, which may be down; they find that the server is gone.
        Work.DEVICE: Rule.BESIDE,
        Work.POWER: Rule.BESIDE,
        Work.GUEST: Rule.BESIDE,
        Work.HARD_REBOOT: Rule.BESIDE,
    },
    Work.MOVE: _AT_THEIR_END,
    # A delete has a resize confirmed on its way.
    Work.CONFIRM: _AT_THEIR_END | {Work.DELETE: Rule.BESIDE},
    Work.REVERT: _AT_THEIR_END,
    Work.REBUILD: _AT_THEIR_END,
    # The host is dead: what needs it will not end by itself. Only its own end, and that of moves, decides where the server is.
    Work.EVACUATE: {
        Work.REBUILD: Rule.CANCELS,
        Work.EVACUATE: Rule.CANCELS,
        Work.RESCUE: Rule.CANCELS,
        Work.SOFT_DELETE: Rule.CANCELS,
        Work.SHELVE: Rule.CANCELS,
        Work.UNSHELVE: Rule.CANCELS,
        Work.IMAGE: Rule.CANCELS,
        Work.VOLUME_IMAGE: Rule.CANCELS,
        Work.VOLUME: Rule.CANCELS,
        Work.SNAPSHOT: Rule.CANCELS,
        Work.DEVICE: Rule.BESIDE,
        Work.POWER: Rule.BESIDE,
        Work.GUEST: Rule.BESIDE,
        Work.HARD_REBOOT: Rule.BESIDE,
    },
    Work.RESCUE: _AT_THEIR_END,
    Work.SOFT_DELETE: _AT_THEIR_END,
    Work.SHELVE: _AT_THEIR_END,
    Work.UNSHELVE: _AT_THEIR_END,
    # The host does one thing to a guest at a time.
    Work.IMAGE: _AT_THEIR_END | {Work.DEVICE: Rule.BESIDE},
    Work.VOLUME_IMAGE: _AT_THEIR_END | {Work.DEVICE: Rule.BESIDE},
    # The hypervisor copies a disk, or changes the files below it: whoever starts the guest has to know which it stands on.
    Work.VOLUME: _AT_THEIR_END,
    # The image waits for the snapshots that block storage asks for, or has deleted those that it made.
    Work.SNAPSHOT: _AT_THEIR_END | {Work.VOLUME_IMAGE: Rule.BESIDE},
    # What works on the server knows its devices: it has to have ended.
    Work.DEVICE: {Work.DEVICE: Rule.BESIDE},
    Work.POWER: {Work.DEVICE: Rule.BESIDE},
    Work.GUEST: {Work.DEVICE: Rule.BESIDE},
    # It is how users end what hangs in a guest.
    Work.HARD_REBOOT: {Work.DEVICE: Rule.BESIDE, Work.GUEST: Rule.BESIDE, Work.HARD_REBOOT: Rule.BESIDE},
    Work.DEVICE_RECORD: {
        work: Rule.BESIDE for work in Work if work not in (Work.MOVE, Work.CONFIRM, Work.REVERT, Work.BUILD)
    },
    Work.RECORD: dict.fromkeys(Work, Rule.BESIDE),
}

WORK_OF_TASK: dict[TaskState, Work] = {
    TaskState.SCHEDULING: Work.BUILD,
    TaskState.BLOCK_DEVICE_MAPPING: Work.BUILD,
    TaskState.NETWORKING: Work.BUILD,
    TaskState.SPAWNING: Work.BUILD,
    TaskState.RESIZE_PREP: Work.MOVE,
    TaskState.RESIZE_MIGRATING: Work.MOVE,
    TaskState.RESIZE_MIGRATED: Work.MOVE,
    TaskState.RESIZE_FINISH: Work.MOVE,
    TaskState.RESIZE_REVERTING: Work.REVERT,
    TaskState.MIGRATING: Work.MOVE,
    TaskState.POWERING_OFF: Work.POWER,
    TaskState.POWERING_ON: Work.POWER,
    TaskState.REBOOTING: Work.GUEST,
    TaskState.REBOOT_PENDING: Work.GUEST,
    TaskState.REBOOT_STARTED: Work.GUEST,
    TaskState.PAUSING: Work.GUEST,
    TaskState.UNPAUSING: Work.GUEST,
    TaskState.SUSPENDING: Work.GUEST,
    TaskState.RESUMING: Work.GUEST,
    TaskState.REBOOTING_HARD: Work.HARD_REBOOT,
    TaskState.REBOOT_PENDING_HARD: Work.POWER,
    TaskState.REBOOT_STARTED_HARD: Work.POWER,
    TaskState.IMAGE_SNAPSHOT_PENDING: Work.IMAGE,
    TaskState.IMAGE_SNAPSHOT: Work.IMAGE,
    TaskState.IMAGE_PENDING_UPLOAD: Work.IMAGE,
    TaskState.IMAGE_UPLOADING: Work.IMAGE,
    TaskState.IMAGE_BACKUP: Work.IMAGE,
    TaskState.REBUILDING: Work.REBUILD,
    TaskState.REBUILD_BLOCK_DEVICE_MAPPING: Work.REBUILD,
    TaskState.REBUILD_SPAWNING: Work.REBUILD,
    TaskState.DELETING: Work.DELETE,
    TaskState.SOFT_DELETING: Work.SOFT_DELETE,
    TaskState.RESTORING: Work.SOFT_DELETE,
    TaskState.RESCUING: Work.RESCUE,
    TaskState.UNRESCUING: Work.RESCUE,
    TaskState.UPDATING_PASSWORD: Work.GUEST,
    TaskState.SHELVING: Work.SHELVE,
    TaskState.SHELVING_OFFLOADING: Work.SHELVE,
    TaskState.UNSHELVING: Work.UNSHELVE,
    TaskState.SWAPPING_VOLUME: Work.VOLUME,
    TaskState.SNAPSHOTTING_VOLUME: Work.SNAPSHOT,
    TaskState.REFRESHING_ATTACHMENT: Work.VOLUME,
}


def rule(asked: Work, under_way: Work) -> Rule:
    return _RULES[asked].get(under_way, Rule.REFUSED)


def tasks_beside(asked: Work) -> frozenset[TaskState | None]:
    """The tasks that a server may have when this is asked for."""
    return frozenset(
        {None, *(task for task, work in WORK_OF_TASK.items() if rule(asked, work) in _ACCEPTED_BESIDE_TASK)}
    )
