"""What becomes of a server whose move failed: it is given back as it was, and told why."""

from __future__ import annotations

from causeway import errors
from causeway.model.instance import InstanceFault
from causeway.model.states import MigrationStatus, TaskState, VmState
from causeway.moves.reasons import for_members
from causeway.moves.run import Run
from causeway.moves.steps.confirm import write_events
from causeway.store.api import migrations
from causeway.store.cell import actions, instances
from causeway.store.database import Database


def after_resize(run: Run, cause: errors.CausewayError) -> None:
    """Everything was undone: the server is where it was, with its old states, a fault, and its migration in ``error``."""
    memory = run.memory
    cancelled = isinstance(cause, errors.MoveCancelled)
    _tell(run, run.source_database, cause, fault=not cancelled)
    status = MigrationStatus.CANCELLED if cancelled else MigrationStatus.ERROR
    migrations.update(run.services.api, run.move.migration_uuid, status=status)
    instance = instances.get(run.source_database, run.uuid)
    instances.update(
        run.source_database,
        run.uuid,
        vm_state=VmState.ERROR if memory.source_is_dead else memory.old_vm_state,
        task_state=_task_after(instance.task_state),
        migration_context=None,
        old_flavor=None,
        new_flavor=None,
        old_vm_state=None,
    )
    if cancelled:
        return
    run.services.notifier.compute_task_error(
        run.context,
        "migrate_server",
        instance_uuid=run.uuid,
        state=memory.old_vm_state,
        error=cause,
    )


def after_revert(run: Run, cause: errors.CausewayError) -> None:
    """The server stays on its target and waits for confirm or revert, as before."""
    _tell(run, run.target_database, cause)
    migrations.update(run.services.api, run.move.migration_uuid, status=MigrationStatus.FINISHED)
    instance = instances.get(run.target_database, run.uuid)
    instances.update(
        run.target_database,
        run.uuid,
        vm_state=VmState.RESIZED,
        task_state=_task_after(instance.task_state),
    )


def _task_after(present: TaskState | None) -> TaskState | None:
    # A server that is to be deleted stays so.
    return present if present in (TaskState.DELETING, TaskState.SOFT_DELETING) else None


def _tell(run: Run, database: Database, cause: errors.CausewayError, *, fault: bool = True) -> None:
    """Events, and a fault: what failed, where, in which step, in words a user understands."""
    record = InstanceFault(
        code=500, message=cause.message[:255], details=cause.details, host=run.step.host if run.step else None
    )
    with database.write() as connection:
        write_events(connection, run, cause)
        # Members may read this, whatever they may not see of events and migrations.
        sentence = for_members(cause.message, run.memory)
        actions.set_message_in(connection, run.uuid, run.context.request_id, sentence)
        known = [other.message for other in actions.faults_in(connection, run.uuid)[-1:]]
        if fault and record.message not in known:
            actions.add_fault_in(connection, run.uuid, record)
