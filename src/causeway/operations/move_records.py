"""Moves a server that is on no host to another cell: only its records move. Its image, volumes and ports belong to no cell.

Drains do this with servers that are shelved and offloaded, and with servers in ERROR that never were on a host.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import sqlalchemy as sa

from causeway import errors
from causeway.context import RequestContext
from causeway.devices import late
from causeway.model import operations, server_actions
from causeway.model.flavor import Flavor
from causeway.model.instance import Instance
from causeway.model.operation_kinds import kind_of
from causeway.model.states import TaskState
from causeway.moves.steps.local_disks import for_flavor
from causeway.moves.steps.records import last_read, require_authority
from causeway.operations import endings
from causeway.operations.operation_run import OperationRun
from causeway.requests.asking import ask
from causeway.requests.of_servers import RequestServices
from causeway.sagas.memory import Given
from causeway.sagas.recipe import Recipe, Step
from causeway.store.api import mappings
from causeway.store.cell import copies, instances
from causeway.store.database import Database

TASKS = {TaskState.MIGRATING}


@dataclass
class MoveRecordsMemory:
    """``flavor``: the server's new flavor; None to keep its own."""

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
    """Requests the move. ``cell_uuid``: where the caller read the server. ``also``: see `causeway.requests.asking.ask`.

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
    """The pivot: copies all records of the server, and makes the target cell its home.

    The source's records are closed before they are read: later changes wait until the server lives in the target cell.
    """

    name = "SwitchInstanceMapping"
    reads = frozenset({"flavor", "source_cell", "target_cell"})

    def do(self, run: Run) -> None:
        if run.saga.pivoted:
            return
        with run.event(kind_of(operations.MOVE_RECORDS).event):
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
        # Unshelving chooses a host by this.
        mappings.set_in_spec_in(connection, run.uuid, flavor=memory.flavor)


class ShowTarget(Step[Run]):
    """Shows the copy in the target cell, and hides the one in the source cell."""

    name = "ShowTarget"
    reads = frozenset({"source_cell", "target_cell"})

    def do(self, run: Run) -> None:
        instances.show(_target(run), run.uuid, run.saga.id)
        instances.set_hidden(_source(run), run.uuid, hidden=True)


class DeleteSourceRecords(Step[Run]):
    """Hard-deletes the copy of the source cell, after reading the one of the target cell."""

    name = "DeleteSourceRecords"
    reads = frozenset({"source_cell", "target_cell"})

    def do(self, run: Run) -> None:
        require_authority(run, run.memory.target_cell)
        instances.get(_target(run), run.uuid, with_tags=False)
        copies.hard_delete(_source(run), run.uuid, hidden_only=True)


class EndMoveOfRecords(Step[Run]):
    """Ends the task of the server, which is in the target cell now, in its former state."""

    name = "EndMoveOfRecords"
    reads = frozenset({"target_cell"})

    def do(self, run: Run) -> None:
        with _target(run).write() as connection:
            run.write_history(connection)
            # The server has another task: this was done before, or an administrator has set other states.
            instances.end_task_in(connection, run.uuid, TASKS)


def _rolled_back(run: Run, cause: errors.CausewayError) -> None:
    """Restores the server in its cell."""
    endings.failed(run, cause, TASKS)


def undo_late(run: OperationRun[Any]) -> None:
    """Undoes what a slow conductor did too late: it closed or copied records after another conductor had rolled back."""
    services, memory = run.unguarded, run.memory
    if mappings.get(services.api, run.uuid).cell_uuid != memory.source_cell:
        return
    instances.reopen(_source(run), run.uuid, run.saga.id)
    if not memory.target_cell:
        return
    late.require_ended(run)
    copies.hard_delete(_target(run), run.uuid, hidden_only=True)


MOVE_RECORDS = Recipe(
    operations.MOVE_RECORDS,
    (SwitchInstanceMapping(), ShowTarget(), DeleteSourceRecords(), EndMoveOfRecords()),
    pivot="SwitchInstanceMapping",
    rolled_back=_rolled_back,
    undo_late=undo_late,
    memory=MoveRecordsMemory,
)
