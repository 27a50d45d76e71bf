"""Live migration: a guest goes to another host of its cell without stopping.

The target is chosen, checked and prepared while the guest runs. Then the source's hypervisor sends the guest. Once the memory is
only at the target there is no way back, so what both hypervisors show decides whether the pivot has come (`live_owner`).
Everything before the pivot is undone after a failure; everything after it goes forward. The steps are in `live_target` (before
the transfer), `live_transfer` (the transfer) and `live_arrival` (after it).
"""

from __future__ import annotations

import uuid as uuids

import sqlalchemy as sa

from causeway import errors
from causeway.context import RequestContext
from causeway.model import operations
from causeway.model.instance import Instance
from causeway.model.migration import LIVE_MIGRATION, Migration, live_status_after
from causeway.model.states import MigrationStatus, VmState
from causeway.moves import near_live
from causeway.moves.memory import MEMORY_VERSION
from causeway.moves.recipe import NEAR_LIVE_VERSION
from causeway.operations import endings
from causeway.operations.live_arrival import ArriveAtTarget, EndLiveMigration, ReleaseSource
from causeway.operations.live_run import TASKS, LiveMemory, Run
from causeway.operations.live_target import ChooseTarget, PrepareTarget
from causeway.operations.live_transfer import MigrateGuest
from causeway.parts import late
from causeway.parts.followers import follower_of
from causeway.parts.live_queue import AwaitTurn, run_queued
from causeway.sagas.recipe import Recipe
from causeway.store.api import journal, migrations
from causeway.store.cell import hosts

__all__ = ["LIVE_MIGRATE", "LiveMemory", "migration_of"]


def migration_of(
    context: RequestContext, instance: Instance, cell_uuid: str, *, dest_compute: str | None = None
) -> Migration:
    """The migration record of a live migration, visible from its acceptance on. ``dest_compute``: the host, if it was forced."""
    return Migration(
        uuid=str(uuids.uuid4()),
        user_id=context.user_id,
        project_id=context.project_id,
        instance_uuid=instance.uuid,
        migration_type=LIVE_MIGRATION,
        status=MigrationStatus.ACCEPTED,
        source_compute=instance.host,
        source_cell=cell_uuid,
        dest_compute=dest_compute,
        dest_cell=cell_uuid,
        old_flavor_id=instance.flavor.id,
        new_flavor_id=instance.flavor.id,
    )


def _rolled_back(run: Run, cause: errors.CausewayError) -> None:
    """Restores the server at its source. Sets it to ERROR if no hypervisor has its guest."""
    api = run.services.api
    before = migrations.get(api, run.saga.migration_uuid).status
    status = live_status_after(before, cancelled=isinstance(cause, errors.Cancelled))
    migrations.update(api, run.saga.migration_uuid, status=status)
    changes = {"migration_context": None, "progress": 0}
    endings.failed(run, cause, TASKS, **changes, **({"vm_state": VmState.ERROR} if run.memory.is_lost else {}))
    if status is MigrationStatus.ERROR:
        run.services.notifier.compute_task_error(
            run.context, "migrate_server", instance_uuid=run.uuid, state=run.memory.old_vm_state, error=cause
        )
    run_queued(run)


def _to_another_cell(run: Run, cause: errors.CausewayError) -> bool:
    """Starts a near-live migration if no host of the cell will do and the server may leave the cell.

    Returns False if it may not.
    """
    live = run.memory
    if not live.may_leave_cell or not isinstance(cause, errors.NoValidHost):
        return False
    node = next(iter(hosts.list_nodes(run.database, host=live.source_host)), None)
    if node is None:
        return False
    memory = near_live.memory_of(run.instance(), run.cell.uuid, node, host=None)
    follower = follower_of(run.saga, operations.NEAR_LIVE_MIGRATION, NEAR_LIVE_VERSION, memory, MEMORY_VERSION, cause)
    requester = journal.requester(run.services.api, run.saga.id)

    def write(connection: sa.Connection) -> None:
        journal.insert_in(connection, follower, requester=requester)
        migrations.update_in(connection, run.saga.migration_uuid, dest_compute=None, dest_node=None)

    run.with_next_save(write)
    return True


def _undo_late(run: Run) -> None:
    late.require_ended(run)
    memory, server = run.memory, late.server_now(run)
    target = memory.place.host if memory.place is not None else None
    is_at_target = server is not None and server.instance.host == target
    late.delete_attachments(run, server, connected_too=not is_at_target)
    late.return_claim(run, server, memory.source_host, memory.source_node)
    if server is not None and target is not None:
        late.delete_bindings(run, server, [target])


LIVE_MIGRATE = Recipe(
    operations.LIVE_MIGRATION,
    (
        ChooseTarget(),
        AwaitTurn[Run](),
        PrepareTarget(),
        MigrateGuest(),
        ArriveAtTarget(),
        ReleaseSource(),
        EndLiveMigration(),
    ),
    pivot="MigrateGuest",
    rolled_back=_rolled_back,
    try_again=_to_another_cell,
    undo_late=_undo_late,
    memory=LiveMemory,
)
