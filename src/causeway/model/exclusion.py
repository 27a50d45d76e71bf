"""Which work on a server excludes which: one table, from which all refusals (409) come.

The server's task and its operations in the journal say what is under way. Each is read in the transaction that writes a request
there, so of two requests one sees the other (`causeway.requests.acceptance`).
"""

from __future__ import annotations

from enum import StrEnum

from causeway.model.states import TaskState


class Work(StrEnum):
    """Work that is requested, or under way."""

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
    GUEST = "soft reboot, pause, unpause, suspend, resume, change of a password, crash dump, trim"
    HARD_REBOOT = "hard reboot"
    DEVICE_RECORD = "change what happens to an attached volume"
    RECORD = "rename, metadata, tags, lock"


class Rule(StrEnum):
    """What happens to a request."""

    #: accepted; both run at the same time
    BESIDE = "beside"
    #: refused
    REFUSED = "refused"
    #: accepted; begins when the other work has ended
    AFTER = "after"
    #: refused while the server has the other work's task. If that task has ended but the journal does not have the end of the
    #: operation yet: accepted, and begins at that end
    AT_ITS_END = "at its end"
    #: accepted; the other work is undone if it has not passed its pivot; begins at its end
    INSTEAD = "instead"
    #: refused; the other work is cancelled, so that a later request is accepted
    CANCELS = "cancels"


_ACCEPTED_BESIDE_TASK = frozenset({Rule.BESIDE, Rule.AFTER, Rule.INSTEAD})
ACCEPTED = _ACCEPTED_BESIDE_TASK | {Rule.AT_ITS_END}

# Operations whose last step ends the server's task before the journal has their end.
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

# requested work -> the rule for each work that may be under way. A pair that is not listed is REFUSED.
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
        # These work on the server's host, which may be down. They find that the server was deleted.
        Work.DEVICE: Rule.BESIDE,
        Work.POWER: Rule.BESIDE,
        Work.GUEST: Rule.BESIDE,
        Work.HARD_REBOOT: Rule.BESIDE,
    },
    Work.MOVE: _AT_THEIR_END,
    # A delete confirms a resize first.
    Work.CONFIRM: _AT_THEIR_END | {Work.DELETE: Rule.BESIDE},
    Work.REVERT: _AT_THEIR_END,
    Work.REBUILD: _AT_THEIR_END,
    # The host is dead, so work that needs it will not end by itself. Only evacuations and moves decide where the server is.
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
    # The hypervisor copies a disk, or changes the files below it: work that starts the guest must know which disk to use.
    Work.VOLUME: _AT_THEIR_END,
    # The image waits for the snapshots that block storage requests, or has deleted those that it made.
    Work.SNAPSHOT: _AT_THEIR_END | {Work.VOLUME_IMAGE: Rule.BESIDE},
    # Other work on the server uses its devices, so it must have ended.
    Work.DEVICE: {Work.DEVICE: Rule.BESIDE},
    Work.POWER: {Work.DEVICE: Rule.BESIDE},
    Work.GUEST: {Work.DEVICE: Rule.BESIDE},
    # Users need this to end a guest that hangs.
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
    """The tasks that a server may have when this work is requested."""
    return frozenset(
        {None, *(task for task, work in WORK_OF_TASK.items() if rule(asked, work) in _ACCEPTED_BESIDE_TASK)}
    )
