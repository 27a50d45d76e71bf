"""Moves a server that is on no host to another cell: only its records move. Its image, volumes and ports belong to no cell.

Drains do this with servers that are shelved and offloaded, and with servers in ERROR that never were on a host.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

import sqlalchemy as sa

from causeway import errors
from causeway.context import RequestContext
from causeway.devices import late
from causeway.model import operations, server_actions
from causeway.model.flavor import Flavor
from causeway.model.instance import Instance
from causeway.model.operation_kinds import kind_of
from causeway.model.states import TaskState
from causeway.moves.cells_run import CellsRun
from causeway.moves.steps.local_disks import for_flavor
from causeway.moves.steps.records import DeleteSourceRecords, ShowRecords, SwitchRecords, require_authority
from causeway.requests.asking import ask
from causeway.requests.of_servers import RequestServices
from causeway.running.operation_run import OperationRun
from causeway.sagas.memory import Given
from causeway.sagas.recipe import Former, Recipe, Step
from causeway.servers import endings
from causeway.store.api import mappings
from causeway.store.cell import copies, instances

TASKS = {TaskState.MIGRATING}
# The names that release 0.1.0 gave to steps.
OF_0_1_0 = {"SwitchInstanceMapping": "MoveRecords", "ShowTarget": "ShowRecords"}

M = TypeVar("M", bound="MoveRecordsMemory")


@dataclass
class MoveRecordsMemory:
    """``flavor``: the server's new flavor; None to keep its own."""

    source_cell: str
    target_cell: str
    flavor: Given[Flavor | None] = None


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


class RecordsRun(CellsRun[M], OperationRun[M], Generic[M]):
    """The move of a server that is on no host."""


Run: TypeAlias = RecordsRun[MoveRecordsMemory]


class MoveRecords(SwitchRecords[RecordsRun[Any]]):
    """The pivot: copies all records of the server, and makes the target cell its home.

    The source's records are closed before they are read: later changes wait until the server lives in the target cell.
    """

    name = "MoveRecords"
    reads = frozenset({"flavor", "source_cell", "target_cell"})

    def do(self, run: RecordsRun[Any]) -> None:
        if self._is_done(run):
            # By 0.1.0, whose pivot was not the end of the step. It has recorded the event.
            return
        with run.event(kind_of(operations.MOVE_RECORDS).event):
            super().do(run)

    def _change(self, run: RecordsRun[Any], bundle: copies.Bundle) -> None:
        instance, flavor = bundle.instance, run.memory.flavor or bundle.instance.flavor
        _require_no_host(instance)
        bundle.instance = dataclasses.replace(instance, flavor=flavor, hidden=True)
        bundle.block_devices = for_flavor(run, instance.flavor, flavor, bundle.block_devices)

    def _switch(self, connection: sa.Connection, run: RecordsRun[Any]) -> None:
        super()._switch(connection, run)
        if run.memory.flavor is not None:
            # Unshelving chooses a host by this.
            mappings.set_in_spec_in(connection, run.uuid, flavor=run.memory.flavor)

    def undo(self, run: RecordsRun[Any]) -> None:
        require_authority(run, run.memory.source_cell)
        super().undo(run)
        copies.hard_delete(run.target_database, run.uuid, hidden_only=True)


class EndMoveOfRecords(Step[Run]):
    """Ends the task of the server, which is in the target cell now, in its former state."""

    name = "EndMoveOfRecords"
    reads = frozenset({"target_cell"})

    def do(self, run: Run) -> None:
        with run.target_database.write() as connection:
            run.write_history(connection)
            # The server has another task: this was done before, or an administrator has set other states.
            instances.end_task_in(connection, run.uuid, TASKS)


def _rolled_back(run: Run, cause: errors.CausewayError) -> None:
    """Restores the server in its cell."""
    endings.failed(run, cause, TASKS)


def undo_late(run: RecordsRun[Any]) -> None:
    """Undoes what a slow conductor did too late: it closed or copied records after another conductor had rolled back."""
    services, memory = run.unguarded, run.memory
    if mappings.get(services.api, run.uuid).cell_uuid != memory.source_cell:
        return
    instances.reopen(run.source_database, run.uuid, run.saga.id)
    if not memory.target_cell:
        return
    late.require_ended(run)
    copies.hard_delete(run.target_database, run.uuid, hidden_only=True)


MOVE_RECORDS = Recipe(
    operations.MOVE_RECORDS,
    (MoveRecords(), ShowRecords[Run](), DeleteSourceRecords(), EndMoveOfRecords()),
    pivot="MoveRecords",
    rolled_back=_rolled_back,
    undo_late=undo_late,
    version=2,
    formers=(Former(operations.MOVE_RECORDS, 1, OF_0_1_0),),
    memory=MoveRecordsMemory,
)
