"""Tries a move once more: as a whole if it was rolled back for a passing reason; near-live if it can't succeed live.

The second try is another move of the same migration, because computes refuse further orders of a move that was undone. The server
keeps its task, so its user sees one resize that takes longer, and can still cancel it. A guest that moves near-live stands still
for a while.
"""

from __future__ import annotations

import dataclasses
import logging

import sqlalchemy as sa

from causeway import errors
from causeway.model import operations
from causeway.model.operations import Operation
from causeway.model.states import RESIZE_TASKS, MigrationStatus, TaskState
from causeway.moves.live_requests import memory_of
from causeway.moves.memory import MEMORY_VERSION, MoveMemory
from causeway.moves.move_run import Run
from causeway.moves.recipe import NEAR_LIVE_VERSION, RESIZE_VERSION
from causeway.running.followers import follower_of
from causeway.store.api import journal, migrations
from causeway.store.cell import hosts, instances

LOG = logging.getLogger(__name__)


def whole_move(run: Run, cause: errors.CausewayError) -> bool:
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
    return follower_of(run.move, operations.RESIZE, RESIZE_VERSION, _as_requested(run), MEMORY_VERSION, cause)


def _as_requested(run: Run) -> MoveMemory:
    memory = run.memory.as_requested()
    # The events of these steps are in the rows of this move. The new move needs them: it writes the history of the whole action.
    memory.events = [*memory.events, *run.step_events()]
    return memory


def near_live(run: Run, cause: errors.CausewayError) -> bool:
    """Requests the near-live migration in the transaction that ends this one. Returns False if there is none.

    Inside a cell: if no host of the cell will do, and the server may leave it. To another cell: if the source reaches none of the
    chosen hosts, or the image of the server's disk was deleted.
    """
    memory = _to_other_cell(run, cause) if run.memory.is_cross_cell else _out_of_cell(run, cause)
    if memory is None:
        return False
    follower = follower_of(run.move, operations.NEAR_LIVE_MIGRATION, NEAR_LIVE_VERSION, memory, MEMORY_VERSION, cause)
    requester = journal.requester(run.services.api, run.move.id)

    def write(connection: sa.Connection) -> None:
        journal.insert_in(connection, follower, requester=requester)
        migrations.update_in(connection, run.move.migration_uuid, dest_compute=None, dest_node=None)

    run.with_next_save(write)
    return True


def _to_other_cell(run: Run, cause: errors.CausewayError) -> MoveMemory | None:
    if not isinstance(cause, errors.HostUnreachable | errors.ImageNotFound):
        return None
    return dataclasses.replace(_as_requested(run), may_go_live=False)


def _out_of_cell(run: Run, cause: errors.CausewayError) -> MoveMemory | None:
    if not run.memory.may_leave_cell or not isinstance(cause, errors.NoValidHost):
        return None
    node = next(iter(hosts.list_nodes(run.source_database, host=run.memory.source_host)), None)
    if node is None:
        return None
    return memory_of(run.source_instance(), run.memory.source_cell, node, host=None)
