"""A server that is on no host goes to another cell: only its records move. Its image, volumes and ports belong to no cell.

That is what a drain does with servers that are shelved and offloaded, and with those in ERROR that never came to a host.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import sqlalchemy as sa

from causeway import errors
from causeway.context import RequestContext
from causeway.model import operations, server_actions
from causeway.model.flavor import Flavor
from causeway.model.instance import Instance
from causeway.model.sagas import ENDED
from causeway.model.states import TaskState
from causeway.moves.steps.local_disks import for_flavor
from causeway.moves.steps.records import last_read, require_authority
from causeway.operations import endings
from causeway.operations.requests import ask
from causeway.operations.run import OperationRun
from causeway.parts.requests import RequestServices
from causeway.sagas.memory import Given
from causeway.sagas.recipe import Recipe, Step
from causeway.scheduler.request import RequestSpec
from causeway.store.api import journal, mappings
from causeway.store.cell import copies, instances
from causeway.store.database import Database

LOG = logging.getLogger(__name__)

TASKS = {TaskState.MIGRATING}


@dataclass
class MoveRecordsMemory:
    """``flavor``: the one that the server is to have from then on; None: its own."""

    source_cell: str
    target_cell: str
    flavor: Given[Flavor | None] = None


Run: TypeAlias = OperationRun[MoveRecordsMemory]


def request_move_of_records(
    services: RequestServices,
    context: RequestContext,
    instance: Instance,
    cell_uuid: str,
    *,
    target_cell: str,
    flavor: Flavor | None = None,
    reason: str | None = None,
    also: Callable[[sa.Connection], None] | None = None,
) -> None:
    """``cell_uuid``: where the caller read the server. ``also``: see `causeway.operations.requests.ask`.

    Raises Conflict if the server is on a host, StateChanged if another request was quicker.
    """
    _require_no_host(instance)
    memory = MoveRecordsMemory(cell_uuid, target_cell, flavor)
    action = server_actions.MOVE_RECORDS
    ask(
        services,
        context,
        instance,
        cell_uuid,
        action,
        operations.MOVE_RECORDS,
        memory,
        reason=reason,
        also=also,
    )


def _require_no_host(instance: Instance) -> None:
    if instance.host is not None:
        raise errors.Conflict(f"Server {instance.uuid} is on host {instance.host}: its records can't go without it.")


def _source(run: Run) -> Database:
    return run.services.cells.database(run.memory.source_cell)


def _target(run: Run) -> Database:
    return run.services.cells.database(run.memory.target_cell)


class SwitchInstanceMapping(Step[Run]):
    """The pivot: all of the server's records are copied, and it lives in the target cell from here on.

    From the read on the source's are closed: a change that comes now waits until the server lives in the target cell.
    """

    name = "SwitchInstanceMapping"
    reads = frozenset({"flavor", "source_cell", "target_cell"})

    def do(self, run: Run) -> None:
        if run.saga.pivoted:
            return
        with run.event("conductor_migrate_server"):
            with last_read(run, _source(run)) as bundle:
                _require_no_host(bundle.instance)
                copies.write(_target(run), _as_moved(run, bundle), closed_by=run.saga.id)
            run.pivot(also=lambda connection: _switch(connection, run))

    def undo(self, run: Run) -> None:
        require_authority(run, run.memory.source_cell)
        instances.reopen(_source(run), run.uuid, run.saga.id)
        copies.hard_delete(_target(run), run.uuid, hidden_only=True)


def _as_moved(run: Run, bundle: copies.Bundle) -> copies.Bundle:
    instance, flavor = bundle.instance, run.memory.flavor or bundle.instance.flavor
    return dataclasses.replace(
        bundle,
        instance=dataclasses.replace(instance, flavor=flavor, hidden=True),
        block_devices=for_flavor(run, instance.flavor, flavor, bundle.block_devices),
    )


def _switch(connection: sa.Connection, run: Run) -> None:
    memory = run.memory
    mappings.set_cell_in(connection, run.uuid, memory.target_cell, expected=memory.source_cell)
    if memory.flavor is not None:
        # Who unshelves it asks for a host by that.
        spec = RequestSpec.from_persisted(mappings.get_spec_in(connection, run.uuid))
        spec.flavor = memory.flavor
        mappings.save_spec_in(connection, run.uuid, spec.to_persist())


class ShowTarget(Step[Run]):
    """What follows from the switch: the copies' hidden flags."""

    name = "ShowTarget"
    reads = frozenset({"source_cell", "target_cell"})

    def do(self, run: Run) -> None:
        instances.show(_target(run), run.uuid, run.saga.id)
        instances.set_hidden(_source(run), run.uuid, hidden=True)


class DeleteSourceRecords(Step[Run]):
    """Hard-deletes the source cell's copy, when the target cell has shown its own."""

    name = "DeleteSourceRecords"
    reads = frozenset({"source_cell", "target_cell"})

    def do(self, run: Run) -> None:
        require_authority(run, run.memory.target_cell)
        instances.get(_target(run), run.uuid, with_tags=False)
        copies.hard_delete(_source(run), run.uuid, hidden_only=True)


class EndMoveOfRecords(Step[Run]):
    """The server is what it was, in the target cell."""

    name = "EndMoveOfRecords"
    reads = frozenset({"target_cell"})

    def do(self, run: Run) -> None:
        with _target(run).write() as connection:
            run.write_history(connection)
            # Another task: it was done before, or an administrator gave the server other states.
            instances.end_task_in(connection, run.uuid, TASKS)


def _rolled_back(run: Run, cause: errors.CausewayError) -> None:
    """The server is in its cell as before."""
    endings.failed(run, cause, TASKS)


def undo_late(run: Run) -> None:
    """A conductor that was only slow closed the server's records, or copied them, after another one had undone that."""
    services, memory = run.unguarded, run.memory
    if journal.get(services.api, run.saga.id).state not in ENDED:
        return
    if mappings.get(services.api, run.uuid).cell_uuid != memory.source_cell:
        return
    instances.reopen(_source(run), run.uuid, run.saga.id)
    if not memory.target_cell:
        return
    if journal.active_of_server(services.api, run.uuid) is not None:
        LOG.warning(
            "Operation %s was lost while it acted; `causeway audit` shows whether a copy is orphaned", run.saga.id
        )
        return
    copies.hard_delete(_target(run), run.uuid, hidden_only=True)


MOVE_RECORDS = Recipe(
    operations.MOVE_RECORDS,
    (SwitchInstanceMapping(), ShowTarget(), DeleteSourceRecords(), EndMoveOfRecords()),
    pivot="SwitchInstanceMapping",
    rolled_back=_rolled_back,
    undo_late=undo_late,
    memory=MoveRecordsMemory,
)
