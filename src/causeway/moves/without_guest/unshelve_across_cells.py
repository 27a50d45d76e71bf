"""Unshelves a server in another cell: claims a host there, moves the records, then unshelves the server there.

These are two operations, because the pivot of the first is the switch between cells. If the guest can't be made afterwards, the
second one is rolled back, and the server is shelved in the other cell.
"""

from __future__ import annotations

import dataclasses
from typing import Any, TypeAlias

from causeway import errors
from causeway.model import operations
from causeway.model.states import TaskState
from causeway.model.things import Thing
from causeway.moves import placing
from causeway.moves.destination import keeps_zone
from causeway.moves.steps.records import DeleteSourceRecords, ShowRecords
from causeway.moves.without_guest.move_records import (
    OF_0_1_0,
    MoveRecords,
    RecordsRun,
    undo_late,
)
from causeway.moves.without_guest.new_home import new_home_of
from causeway.moves.without_guest.unshelve_memory import (
    UNSHELVE_ACROSS_CELLS_VERSION,
    UNSHELVE_VERSION,
    UnshelveAcrossCellsMemory,
)
from causeway.running.followers import follower_of
from causeway.sagas.recipe import Former, Recipe, Step
from causeway.servers import endings
from causeway.servers.undo_late import undo_claim
from causeway.store.api import journal

TASKS = {TaskState.UNSHELVING}

Run: TypeAlias = RecordsRun[UnshelveAcrossCellsMemory]


class SelectHostElsewhere(Step[Run]):
    """Claims a host of another cell for the server."""

    name = "SelectHostElsewhere"
    reads = frozenset({"source_cell"})
    writes = frozenset({"target_cell", "unshelve"})
    makes = frozenset({Thing.ALLOCATION})

    def do(self, run: Run) -> None:
        services, memory, instance = run.services, run.memory, run.instance()
        if run.is_repeated:
            # An earlier attempt may have claimed another host.
            services.placement.delete_allocations(run.uuid)
        wanted = memory.unshelve.wanted_host
        keeps = keeps_zone(
            services.conf,
            names_host=wanted is not None,
            has_volumes=lambda: any(device.is_volume for device in run.devices()),
        )
        with run.event(run.kind.event):
            place = placing.choose(
                services,
                run.context,
                dataclasses.replace(instance, host=None, node=None),
                memory.target_cell or memory.source_cell,
                order=run.order,
                host=wanted,
                leaves_cell=not memory.target_cell,
                zone=instance.availability_zone if keeps else None,
            )
        memory.target_cell = place.selection.cell_uuid
        memory.unshelve = dataclasses.replace(memory.unshelve, place=new_home_of(place.instance))

    def undo(self, run: Run) -> None:
        run.services.placement.delete_allocations(run.uuid)


class UnshelveThere(Step[Run]):
    """Requests the operation that unshelves the server in the other cell, where it is now."""

    name = "UnshelveThere"
    reads = frozenset({"target_cell", "unshelve"})

    def do(self, run: Run) -> None:
        with run.services.cells.database(run.memory.target_cell).write() as connection:
            run.write_history(connection)
        follower = follower_of(run.saga, operations.UNSHELVE, UNSHELVE_VERSION, run.memory.unshelve, 1)
        requester = journal.requester(run.services.api, run.saga.id)
        run.with_next_save(lambda connection: journal.insert_in(connection, follower, requester=requester))


def _rolled_back(run: Run, cause: errors.CausewayError) -> None:
    """The server stays shelved in its cell."""
    endings.failed(run, cause, TASKS)


def _undo_late(run: Run) -> None:
    undo_claim(run)
    undo_late(run)


UNSHELVE_ACROSS_CELLS: Recipe[Any] = Recipe(
    operations.UNSHELVE_ACROSS_CELLS,
    (SelectHostElsewhere(), MoveRecords(), ShowRecords[Run](), DeleteSourceRecords(), UnshelveThere()),
    pivot="MoveRecords",
    rolled_back=_rolled_back,
    undo_late=_undo_late,
    version=UNSHELVE_ACROSS_CELLS_VERSION,
    formers=(Former(operations.UNSHELVE_ACROSS_CELLS, 1, OF_0_1_0),),
    memory=UnshelveAcrossCellsMemory,
)
