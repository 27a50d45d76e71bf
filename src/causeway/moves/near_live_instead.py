"""Tries a live migration that can't succeed once more, as a near-live migration to another cell.

The guest stands still for a while then. The near-live migration is another operation of the same migration.
"""

from __future__ import annotations

import dataclasses

import sqlalchemy as sa

from causeway import errors
from causeway.model import operations
from causeway.moves import near_live
from causeway.moves.memory import MEMORY_VERSION, MoveMemory
from causeway.moves.move_run import Run
from causeway.moves.recipe import NEAR_LIVE_VERSION
from causeway.running.followers import follower_of
from causeway.store.api import journal, migrations
from causeway.store.cell import hosts


def prepare(run: Run, cause: errors.CausewayError) -> bool:
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
    memory = dataclasses.replace(run.memory.as_requested(), may_go_live=False)
    memory.events = [*memory.events, *run.step_events()]
    return memory


def _out_of_cell(run: Run, cause: errors.CausewayError) -> MoveMemory | None:
    if not run.memory.may_leave_cell or not isinstance(cause, errors.NoValidHost):
        return None
    node = next(iter(hosts.list_nodes(run.source_database, host=run.memory.source_host)), None)
    if node is None:
        return None
    return near_live.memory_of(run.source_instance(), run.memory.source_cell, node, host=None)
