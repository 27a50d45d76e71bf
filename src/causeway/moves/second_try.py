"""Tries a whole move once more if it was rolled back for a passing reason.

The second try is another move of the same migration, because computes refuse further orders of a move that was undone. The server
keeps its task, so its user sees one resize that takes longer, and can still cancel it.
"""

from __future__ import annotations

import logging

import sqlalchemy as sa

from causeway import errors
from causeway.model import operations
from causeway.model.operations import Operation
from causeway.model.states import RESIZE_TASKS, MigrationStatus, TaskState
from causeway.moves.memory import MEMORY_VERSION
from causeway.moves.move_run import Run
from causeway.moves.recipe import RESIZE_VERSION
from causeway.running.followers import follower_of
from causeway.store.api import journal, migrations
from causeway.store.cell import instances

LOG = logging.getLogger(__name__)


def prepare(run: Run, cause: errors.CausewayError) -> bool:
    """Requests another move in the transaction that ends this one, and returns True. Returns False if there is no other try.

    The caller has checked that the move is still wanted. ``cause``: why this move was undone.
    """
    options = run.unguarded.conf.moves
    if not cause.passes_by_itself or run.memory.source_is_dead:
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
    # The events of these steps are in the rows of this move. The new move needs them: it writes the history of the whole action.
    memory.events = [*memory.events, *run.step_events()]
    return follower_of(move, operations.RESIZE, RESIZE_VERSION, memory, MEMORY_VERSION, cause)
