"""Orders that a host missed while it was dead. It must carry them out when it comes back, before anything else."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.outcomes import OperationToken


class Missed(StrEnum):
    """Orders that a host can miss. All except the last three are orders of moves, under their own names."""

    CONFIRM = "confirm_snapshot_based_resize_at_source"
    UNDO = "drop_move_at_dest"
    #: `UNDO` of a move whose target may be its source. Hosts of 0.1.0 would take `UNDO` for one of another host
    UNDO_INSIDE_CELL = "revert_resize"
    #: `CONFIRM`, as conductors of 0.1.0 noted it for moves inside a cell
    CONFIRM_OF_0_1_0 = "confirm_resize"
    UNDO_LIVE = "rollback_live_migration_at_destination"
    DELETE_LIVE_SOURCE = "post_live_migration_at_source"
    RELEASE_CLAIM = "drop_move_claim"
    #: delete what was copied of a running guest: at the target its copies, at the source its rounds and the note that it departs
    DISCARD_COPIES = "discard_copies"
    #: the server was deleted, or was not built there: delete everything of it
    DESTROY = "destroy_instance"
    #: the server lives on another host: delete what is here of it. Sent to hosts as `DESTROY`
    REMOVE = "remove_guest"
    #: the server must come back from its stashed disks there: put them into their place
    RESTORE_DISKS = "restore_disks"

    @property
    def deletes_stash_only(self) -> bool:
        """Whether only stashed disks are deleted."""
        return self in (
            Missed.CONFIRM,
            Missed.CONFIRM_OF_0_1_0,
            Missed.RELEASE_CLAIM,
            Missed.DISCARD_COPIES,
        )


@dataclass
class MissedOrder:
    """``instance`` and ``block_devices``: as the records had them then. ``token``: of the move, if there was one.

    ``stop_only``: the guest, if there is one, is powered off, and nothing else is done.
    """

    id: str
    what: Missed
    instance: Instance
    block_devices: list[BlockDevice] = field(default_factory=list)
    token: OperationToken | None = None
    source_host: str | None = None
    stop_only: bool = False

    @classmethod
    def stop(cls, instance: Instance) -> MissedOrder:
        """An order to only stop the guest."""
        return cls(f"stop {instance.uuid}", Missed.RELEASE_CLAIM, instance, stop_only=True)
