"""Tries a move once more.

As a whole if it was rolled back for a passing reason; with another host if the guest's ports were not wired at the one that was
chosen; near-live if it can't succeed live.

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
from causeway.moves.recipe import LIVE_VERSION, NEAR_LIVE_VERSION, RESIZE_VERSION
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


def after_live(run: Run, cause: errors.CausewayError) -> bool:
    """Requests another migration in the transaction that ends this live one. Returns False if there is none.

    Live to another host: if the network service did not wire the guest's ports at the chosen one. Near-live inside a cell: if no
    host of the cell will do, and the server may leave it. Near-live to another cell: if the source reaches none of the chosen
    hosts, or the image of the server's disk was deleted.
    """
    near_live = operations.NEAR_LIVE_MIGRATION, NEAR_LIVE_VERSION
    if isinstance(cause, errors.VifPluggingFailed):
        memory = _to_other_host(run)
        # To another cell, every live migration begins as a near-live one.
        recipe = near_live if run.memory.is_cross_cell else (operations.LIVE_MIGRATION, LIVE_VERSION)
    else:
        memory = _to_other_cell(run, cause) if run.memory.is_cross_cell else _out_of_cell(run, cause)
        recipe = near_live
    if memory is None:
        return False
    follower = follower_of(run.move, *recipe, memory, MEMORY_VERSION, cause)
    requester = journal.requester(run.services.api, run.move.id)

    def write(connection: sa.Connection) -> None:
        journal.insert_in(connection, follower, requester=requester)
        migrations.update_in(connection, run.move.migration_uuid, dest_compute=None, dest_node=None)

    run.with_next_save(write)
    return True


def _to_other_host(run: Run) -> MoveMemory | None:
    memory, retries = run.memory, run.unguarded.conf.conductor.migrate_max_retries
    failed = [*memory.hosts_without_network, memory.target_host]
    # As in Nova, the first host does not count.
    if memory.requested_host is not None or 0 <= retries < len(failed):
        return None
    return dataclasses.replace(_as_requested(run), hosts_without_network=failed)


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
