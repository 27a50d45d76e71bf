"""Another try of a whole move that was rolled back for a passing reason.

It is a move of its own for the same migration: computes refuse what was undone for the first one. The server keeps its task
meanwhile, so its user sees one resize that takes longer, and may still cancel it.
"""

from __future__ import annotations

import logging
import uuid as uuids

import msgspec
import sqlalchemy as sa

from causeway import errors
from causeway.model.operations import Operation
from causeway.model.sagas import SagaState
from causeway.model.states import RESIZE_TASKS, MigrationStatus, TaskState
from causeway.moves.memory import MEMORY_VERSION
from causeway.moves.recipe import BEGINS_AS, BEGINS_AS_VERSION
from causeway.moves.run import Run
from causeway.store.api import journal, migrations
from causeway.store.cell import instances

LOG = logging.getLogger(__name__)


def prepare(run: Run, cause: errors.CausewayError) -> bool:
    """Has the whole tried again, from the transaction on that ends this move; False if the server is to be restored.

    For a move that somebody still wants.
    """
    options = run.unguarded.conf.moves
    if not cause.passing or cause.few_tries or run.memory.source_is_dead:
        return False
    if len(journal.of_migration(run.services.api, run.move.migration_uuid)) >= options.whole_tries:
        return False
    try:
        instances.update(
            run.source_database, run.uuid, expected_task=RESIZE_TASKS, task_state=TaskState.RESIZE_PREP, progress=0
        )
    except errors.TakenOver:
        raise
    except (errors.StateChanged, errors.ServerNotFound):
        return False
    follower, requester = _follower(run, cause), journal.requester(run.services.api, run.move.id)

    def write(connection: sa.Connection) -> None:
        journal.insert_in(connection, follower, pause=options.stuck_retry_interval, requester=requester)
        migrations.update_in(
            connection,
            run.move.migration_uuid,
            status=MigrationStatus.PRE_MIGRATING,
            dest_compute=None,
            dest_node=None,
            dest_host=None,
            dest_cell=None,
            cross_cell_move=False,
        )

    run.with_next_save(write)
    return True


def _follower(run: Run, cause: errors.CausewayError) -> Operation:
    move, memory = run.move, run.memory.as_requested()
    # The steps' events are in this move's rows; the history of the action is written when the whole has ended.
    memory.events = [*memory.events, *run.step_events()]
    return Operation(
        id=str(uuids.uuid4()),
        migration_uuid=move.migration_uuid,
        instance_uuid=move.instance_uuid,
        recipe=BEGINS_AS,
        # Not "requested": that is for what a user asked for just now.
        state=SagaState.RUNNING,
        data=msgspec.to_builtins(memory),
        request_id=move.request_id,
        user_id=move.user_id,
        project_id=move.project_id,
        reason=move.reason,
        error=cause.to_wire(),
        recipe_version=BEGINS_AS_VERSION,
        memory_version=MEMORY_VERSION,
    )
