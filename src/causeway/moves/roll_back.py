"""Restores a server whose move failed to how it was, and records why it failed."""

from __future__ import annotations

import sqlalchemy as sa

from causeway import errors
from causeway.model.instance import InstanceFault
from causeway.model.migration import live_status_after
from causeway.model.states import MigrationStatus, VmState
from causeway.moves.move_run import Run
from causeway.moves.reasons import for_members
from causeway.moves.steps.confirm import NOT_MOVED
from causeway.moves.steps.dead_source import add_fault_in
from causeway.moves.steps.live_prepare import run_queued
from causeway.requests.acceptance import task_of
from causeway.store.api import migrations
from causeway.store.cell import actions, instances
from causeway.store.database import Database


def after_resize(run: Run, cause: errors.CausewayError) -> None:
    """Ends a resize whose steps were undone: restores the server's states, adds a fault, sets the migration to ``error``."""
    _restore(run, cause, MigrationStatus.CANCELLED if isinstance(cause, errors.Cancelled) else MigrationStatus.ERROR)


def after_near_live(run: Run, cause: errors.CausewayError) -> None:
    """Ends a near-live migration like `after_resize`; its migration gets the status of a live migration that failed."""
    before = migrations.get(run.services.api, run.move.migration_uuid).status
    _restore(run, cause, live_status_after(before, cancelled=isinstance(cause, errors.Cancelled)))


def after_live(run: Run, cause: errors.CausewayError) -> None:
    """Ends a live migration like `after_near_live`.

    Also starts live migrations that wait for this one, and sets a server that has lost its guest to ERROR.
    """
    after_near_live(run, cause)
    run_queued(run)


def _restore(run: Run, cause: errors.CausewayError, status: MigrationStatus) -> None:
    """Restores the server's states, and records ``cause``. ``status``: the migration's new status."""
    memory = run.memory
    cancelled = isinstance(cause, errors.Cancelled)
    if _is_recorded(run, run.source_database, cause):
        return
    # The migration first: a client that sees the server without a task may start the next move.
    migrations.update(run.services.api, run.move.migration_uuid, status=status)
    vm_state = VmState.ERROR if memory.source_is_dead or memory.is_lost else memory.old_vm_state
    with run.source_database.write() as connection:
        _record(connection, run, cause, fault=not cancelled and not memory.source_is_dead)
        if memory.source_is_dead:
            # The dead host is the reason for ERROR, whatever the cause of the rollback was.
            add_fault_in(connection, run, cause.details)
        if not instances.end_task_in(connection, run.uuid, memory.tasks, vm_state=vm_state, progress=0, **NOT_MOVED):
            # An administrator has reset the server's states meanwhile.
            instances.update_in(connection, run.uuid, **NOT_MOVED)
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
    """Ends a confirm or revert whose steps were undone: the server waits on its target for confirm or revert, as before."""
    if _is_recorded(run, run.target_database, cause):
        return
    migrations.update(run.services.api, run.move.migration_uuid, status=MigrationStatus.FINISHED)
    with run.target_database.write() as connection:
        _record(connection, run, cause)
        task = task_of(run.move)
        if task is not None:
            instances.end_task_in(connection, run.uuid, {task}, vm_state=VmState.RESIZED)


def _is_recorded(run: Run, database: Database, cause: errors.CausewayError) -> bool:
    """Whether the failure was recorded before. If so, another request may be working on the server and its migration by now."""
    with database.read() as connection:
        sentence = for_members(cause.message, run.memory)
        return actions.has_message_in(connection, run.uuid, run.context.request_id, sentence)


def _record(connection: sa.Connection, run: Run, cause: errors.CausewayError, *, fault: bool = True) -> None:
    """Writes the events of the action and, if ``fault``, a fault. They say what failed, where, and in which step."""
    record = InstanceFault(
        code=500, message=cause.message[:255], details=cause.details, host=run.step.host if run.step else None
    )
    instances.touch_in(connection, run.uuid)
    run.write_history(connection, cause)
    # Every member of the project sees this sentence; not all of them see events and migrations.
    sentence = for_members(cause.message, run.memory)
    actions.set_message_in(connection, run.uuid, run.context.request_id, sentence)
    if fault:
        actions.add_fault_in(connection, run.uuid, record)
