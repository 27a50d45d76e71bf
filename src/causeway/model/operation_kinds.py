"""The table of operations: a row for each kind of operation that the journal runs.

A row says what a kind of operation is for the server, its history and other operations. What it does, step by step, is the
recipe of the same name (`causeway.moves.recipes`, `causeway.operations.recipes`). Which work excludes which:
`causeway.model.exclusion`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from causeway.model import operations, server_actions
from causeway.model.exclusion import Rule, Work, rule
from causeway.model.operations import present_name, with_former_names
from causeway.model.server_actions import ServerAction
from causeway.model.states import MigrationStatus, TaskState


@dataclass(frozen=True, kw_only=True)
class OperationKind:
    #: of the recipe, in the journal
    name: str
    #: what it excludes, and what excludes it
    work: Work
    #: the actions that request it
    actions: tuple[ServerAction, ...]
    #: the server's task from the request's acceptance on; None for no task
    task: TaskState | None
    #: tasks of other work that the server may keep instead, if the request came beside that work
    kept_tasks: frozenset[TaskState | None] = frozenset()
    #: the migration's status from the request's acceptance on, if it follows a finished move
    migration_status: MigrationStatus | None = None
    #: Nova's name of the event of its work in the history of the server's action; empty: Nova has none
    event: str = ""
    #: the same inside a cell, where Nova's conductor has no part in it, or only at first; empty: as between cells
    event_inside_cell: str = ""
    #: whether an image's record is made before it is accepted; others may name an image that a server needs
    makes_image: bool = False
    #: whether later operations of the server wait for its end
    is_waited_for: bool = True
    #: whether it continues while its server is being deleted
    continues_while_deleted: bool = False
    #: whether hypervisors hand the guest over: few at a time, and a user may abort or force that
    is_by_hypervisors: bool = False

    @property
    def is_of_device(self) -> bool:
        """Whether it attaches or detaches a volume or a port. Several of these run side by side."""
        return self.work is Work.DEVICE

    @property
    def may_begin_beside_volume_image(self) -> bool:
        """Whether it may begin during the image of a server on a volume, which waits for it."""
        # Nothing is under way at a build.
        return self.work is not Work.BUILD and rule(self.work, Work.VOLUME_IMAGE) is Rule.BESIDE


def _kind(
    name: str,
    work: Work,
    *actions: ServerAction,
    event: str = "",
    event_inside_cell: str = "",
    kept_tasks: frozenset[TaskState | None] | None = None,
    migration_status: MigrationStatus | None = None,
    makes_image: bool = False,
    is_waited_for: bool = True,
    continues_while_deleted: bool = False,
    is_by_hypervisors: bool = False,
) -> OperationKind:
    """A row of an operation that gives the server the task of its (first) action."""
    return OperationKind(
        name=name,
        work=work,
        actions=actions,
        task=actions[0].begins,
        event=event,
        event_inside_cell=event_inside_cell,
        kept_tasks=kept_tasks or frozenset(),
        migration_status=migration_status,
        makes_image=makes_image,
        is_waited_for=is_waited_for,
        continues_while_deleted=continues_while_deleted,
        is_by_hypervisors=is_by_hypervisors,
    )


_ROWS = (
    OperationKind(
        name=operations.BUILD,
        work=Work.BUILD,
        actions=(),
        task=TaskState.SCHEDULING,
        event="compute__do_build_and_run_instance",
    ),
    OperationKind(
        name=operations.DELETE,
        work=Work.DELETE,
        actions=(),
        task=TaskState.DELETING,
        event="compute_terminate_instance",
        # It requests a confirm and waits for it, so the confirm must not wait for the delete.
        is_waited_for=False,
        continues_while_deleted=True,
    ),
    # Moves.
    _kind(
        operations.RESIZE,
        Work.MOVE,
        *(server_actions.RESIZE, server_actions.MIGRATE),
        event="conductor_migrate_server",
    ),
    _kind(
        operations.CONFIRM_RESIZE,
        Work.CONFIRM,
        server_actions.CONFIRM_RESIZE,
        migration_status=MigrationStatus.CONFIRMING,
        event="conductor_confirm_snapshot_based_resize",
        event_inside_cell="compute_confirm_resize",
        # A delete begins with it.
        continues_while_deleted=True,
    ),
    _kind(
        operations.REVERT_RESIZE,
        Work.REVERT,
        server_actions.REVERT_RESIZE,
        migration_status=MigrationStatus.REVERTING,
        event="conductor_revert_snapshot_based_resize",
        event_inside_cell="compute_revert_resize",
        continues_while_deleted=True,
    ),
    _kind(
        operations.LIVE_MIGRATION,
        Work.MOVE,
        server_actions.LIVE_MIGRATION,
        event="conductor_live_migrate_instance",
        event_inside_cell="conductor_live_migrate_instance",
        is_by_hypervisors=True,
    ),
    _kind(
        operations.NEAR_LIVE_MIGRATION,
        Work.MOVE,
        server_actions.LIVE_MIGRATION,
        event="conductor_live_migrate_instance",
    ),
    _kind(operations.MOVE_RECORDS, Work.MOVE, server_actions.MOVE_RECORDS, event="conductor_migrate_server"),
    _kind(operations.EVACUATE, Work.EVACUATE, server_actions.EVACUATE, event="compute_rebuild_instance"),
    # Images.
    _kind(
        operations.CREATE_IMAGE,
        Work.IMAGE,
        server_actions.CREATE_IMAGE,
        event="compute_snapshot_instance",
        makes_image=True,
    ),
    _kind(
        operations.CREATE_VOLUME_IMAGE,
        Work.VOLUME_IMAGE,
        server_actions.CREATE_IMAGE,
        event="api_snapshot_instance",
        makes_image=True,
    ),
    _kind(
        operations.CREATE_BACKUP,
        Work.IMAGE,
        server_actions.CREATE_BACKUP,
        event="compute_backup_instance",
        makes_image=True,
    ),
    # What a guest is made of, and where it is.
    _kind(operations.REBUILD, Work.REBUILD, server_actions.REBUILD, event="compute_rebuild_instance"),
    _kind(operations.REBUILD_VOLUME, Work.REBUILD, server_actions.REBUILD, event="compute_rebuild_instance"),
    _kind(operations.SHELVE, Work.SHELVE, server_actions.SHELVE, event="compute_shelve_instance", makes_image=True),
    _kind(
        operations.SHELVE_OFFLOAD,
        Work.SHELVE,
        *(server_actions.SHELVE_OFFLOAD, server_actions.OFFLOAD_FROM_DEAD_HOST),
        event="compute_shelve_offload_instance",
    ),
    _kind(operations.UNSHELVE, Work.UNSHELVE, server_actions.UNSHELVE, event="compute_unshelve_instance"),
    _kind(
        operations.UNSHELVE_ACROSS_CELLS, Work.UNSHELVE, server_actions.UNSHELVE, event="conductor_unshelve_instance"
    ),
    _kind(operations.SOFT_DELETE, Work.SOFT_DELETE, server_actions.SOFT_DELETE, event="compute_soft_delete_instance"),
    _kind(operations.RESTORE, Work.SOFT_DELETE, server_actions.RESTORE, event="compute_restore_instance"),
    _kind(operations.RESCUE, Work.RESCUE, server_actions.RESCUE, event="compute_rescue_instance"),
    _kind(operations.UNRESCUE, Work.RESCUE, server_actions.UNRESCUE, event="compute_unrescue_instance"),
    # Volumes and ports. Requests that an attach or detach excludes are refused, so nothing waits for it.
    _kind(operations.SWAP_VOLUME, Work.VOLUME, server_actions.SWAP_VOLUME, event="compute_swap_volume"),
    _kind(
        operations.SNAPSHOT_VOLUME,
        Work.SNAPSHOT,
        server_actions.SNAPSHOT_VOLUME,
        kept_tasks=server_actions.SNAPSHOT_FOR_IMAGE.task,
    ),
    _kind(
        operations.MERGE_VOLUME_FILES,
        Work.SNAPSHOT,
        server_actions.SNAPSHOT_VOLUME,
        kept_tasks=server_actions.SNAPSHOT_FOR_IMAGE.task,
    ),
    _kind(operations.REFRESH_ATTACHMENT, Work.VOLUME, server_actions.REFRESH_ATTACHMENT),
    _kind(
        operations.ATTACH_VOLUME,
        Work.DEVICE,
        server_actions.ATTACH_VOLUME,
        event="compute_attach_volume",
        is_waited_for=False,
    ),
    _kind(
        operations.DETACH_VOLUME,
        Work.DEVICE,
        server_actions.DETACH_VOLUME,
        event="compute_detach_volume",
        is_waited_for=False,
    ),
    _kind(
        operations.ATTACH_INTERFACE,
        Work.DEVICE,
        server_actions.ATTACH_INTERFACE,
        event="compute_attach_interface",
        is_waited_for=False,
    ),
    _kind(
        operations.DETACH_INTERFACE,
        Work.DEVICE,
        server_actions.DETACH_INTERFACE,
        event="compute_detach_interface",
        is_waited_for=False,
    ),
)
KINDS: dict[str, OperationKind] = {kind.name: kind for kind in _ROWS}


def kind_of(recipe: str) -> OperationKind:
    """The row of a recipe, which may have its name of 0.1.0. Raises KeyError for a recipe that only a newer release has."""
    return KINDS[present_name(recipe)]


def find_kind(recipe: str) -> OperationKind | None:
    """The row of a recipe; None for a recipe that only a newer release has."""
    return KINDS.get(present_name(recipe))


def recipes_where(holds: Callable[[OperationKind], bool]) -> tuple[str, ...]:
    """The recipes whose rows are so, and their names of release 0.1.0: for questions to a journal."""
    return with_former_names(*(kind.name for kind in _ROWS if holds(kind)))


# The names of the actions that are recorded when their operation is requested. The record of an attach or detach is written when
# it begins.
ACTIONS = tuple(dict.fromkeys(action.name for kind in _ROWS if not kind.is_of_device for action in kind.actions))
