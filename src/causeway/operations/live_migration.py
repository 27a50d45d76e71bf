"""Live migration: a guest goes to another host of its cell without stopping.

The target is chosen, checked and made ready while the guest runs; then the source's hypervisor has it go. From the moment in
which its memory is at the target and nowhere else there is no way back: so whether the pivot has come is not for any caller to
say, but for what both hypervisors show (`live_owner`). Everything before it is undone, everything after it goes forward. The
steps are in `live_target` (until the guest goes), `live_transfer` (it goes) and `live_arrival` (it is there).
"""

from __future__ import annotations

import uuid as uuids

from causeway import errors
from causeway.context import RequestContext
from causeway.model import operations
from causeway.model.instance import Instance
from causeway.model.migration import LIVE_MIGRATION, Migration
from causeway.model.states import MigrationStatus, VmState
from causeway.operations import endings
from causeway.operations.live_arrival import ArriveAtTarget, EndLiveMigration, LeaveSource
from causeway.operations.live_run import TASKS, LiveMemory, Run, run_queued
from causeway.operations.live_target import AwaitTurn, ChooseTarget, PrepareTarget
from causeway.operations.live_transfer import MigrateGuest
from causeway.sagas.recipe import Recipe
from causeway.store.api import migrations

__all__ = ["LIVE_MIGRATE", "LiveMemory", "migration_of"]


def migration_of(
    context: RequestContext, instance: Instance, cell_uuid: str, *, dest_compute: str | None = None
) -> Migration:
    """What everybody sees of a live migration from its acceptance on. ``dest_compute``: the host that was forced."""
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
    """The server is at its source as before; only one whose guest is nowhere any more is in ERROR."""
    api, migration = run.services.api, migrations.get(run.services.api, run.saga.migration_uuid)
    was_told = migration.status is not MigrationStatus.ACCEPTED
    if isinstance(cause, errors.Cancelled):
        status = MigrationStatus.CANCELLED
    else:
        # As in the field: what the source was told of has failed, what came before that is an error.
        status = MigrationStatus.FAILED if was_told else MigrationStatus.ERROR
    migrations.update(api, migration.uuid, status=status)
    changes = {"migration_context": None, "progress": 0}
    endings.failed(run, cause, TASKS, **changes, **({"vm_state": VmState.ERROR} if run.memory.is_lost else {}))
    if status is MigrationStatus.ERROR:
        run.services.notifier.compute_task_error(
            run.context, "migrate_server", instance_uuid=run.uuid, state=run.memory.old_vm_state, error=cause
        )
    run_queued(run)


LIVE_MIGRATE = Recipe(
    operations.LIVE_MIGRATION,
    (ChooseTarget(), AwaitTurn(), PrepareTarget(), MigrateGuest(), ArriveAtTarget(), LeaveSource(), EndLiveMigration()),
    pivot="MigrateGuest",
    rolled_back=_rolled_back,
    memory=LiveMemory,
)
