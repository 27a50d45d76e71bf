"""What the observer of a cell's database hears of servers' states: what was committed, once for each server and transaction."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from causeway import errors
from causeway.model.flavor import Flavor
from causeway.model.host import CellMapping
from causeway.model.instance import Instance
from causeway.model.states import TaskState, VmState
from causeway.store import schema
from causeway.store.api import cells as cell_records
from causeway.store.cell import copies, instances
from causeway.store.cells import Cells
from causeway.store.database import Database, statements
from causeway.store.state_changes import StateChange, States

MOVE = "99999999-9999-9999-9999-999999999999"
BUILDING = States(VmState.BUILDING, TaskState.SCHEDULING, "server")
ACTIVE = States(VmState.ACTIVE, None, "server")
STOPPING = States(VmState.ACTIVE, TaskState.POWERING_OFF, "server")
STOPPED = States(VmState.STOPPED, None, "server")


class Heard(list[StateChange]):
    def __call__(self, _database: Database, change: StateChange) -> None:
        self.append(change)


def instance(**fields: Any) -> Instance:
    values = {"vm_state": VmState.ACTIVE, **fields}
    return Instance(str(uuid.uuid4()), "project", "user", "server", Flavor("1", "f", 1, 1, 1), **values)


def added(database: Database, server: Instance, *, closed_by: str | None = None) -> str:
    copies.insert(database, copies.Bundle(server, [], [], []), closed_by=closed_by)
    return server.uuid


@pytest.fixture
def server(database: Database) -> str:
    """A server that nobody observed yet."""
    return added(database, instance())


@pytest.fixture
def heard(server: str, database: Database) -> Heard:  # noqa: ARG001
    database.observer = heard = Heard()
    return heard


def test_a_change_is_heard_after_its_commit(server: str, database: Database, heard: Heard) -> None:
    with database.write() as connection:
        instances.swap_in(connection, server, task_state=TaskState.POWERING_OFF)
        assert heard == []
    assert heard == [StateChange(server, ACTIVE, STOPPING)]


def test_what_is_rolled_back_is_not_heard(server: str, database: Database, heard: Heard) -> None:
    with pytest.raises(ZeroDivisionError), database.write() as connection:
        instances.swap_in(connection, server, task_state=TaskState.POWERING_OFF)
        raise ZeroDivisionError
    instances.update(database, server, progress=1)
    assert heard == []


def test_several_changes_of_one_transaction_are_one(server: str, database: Database, heard: Heard) -> None:
    other = added(database, instance())
    heard.clear()
    with database.write() as connection:
        instances.update_in(connection, server, task_state=TaskState.POWERING_OFF)
        instances.update_in(connection, other, display_name="renamed")
        instances.update_in(connection, server, vm_state=VmState.STOPPED, task_state=None)
    renamed = States(VmState.ACTIVE, None, "renamed")
    assert heard == [StateChange(server, ACTIVE, STOPPED), StateChange(other, ACTIVE, renamed)]


def test_what_changes_no_states_is_not_heard(server: str, database: Database, heard: Heard) -> None:
    instances.update(database, server, progress=50)
    instances.update(database, server, vm_state=VmState.ACTIVE, task_state=None)
    with database.write() as connection:
        instances.update_in(connection, server, task_state=TaskState.POWERING_OFF)
        instances.update_in(connection, server, task_state=None)
    with pytest.raises(errors.StateChanged):
        instances.update(database, server, expected_task={TaskState.DELETING}, vm_state=VmState.ERROR)
    assert heard == []


def test_new_and_deleted_servers_are_heard(database: Database, heard: Heard) -> None:
    new = added(database, instance(vm_state=VmState.BUILDING, task_state=TaskState.SPAWNING))
    spawning = States(VmState.BUILDING, TaskState.SPAWNING, "server")
    assert heard == [StateChange(new, BUILDING, spawning)]
    heard.clear()
    instances.soft_delete(database, new)
    instances.soft_delete(database, new)
    assert heard == [StateChange(new, spawning, States(VmState.DELETED, None, "server"))]


def test_copies_of_a_move_are_heard_when_they_become_the_server(
    server: str, database: Database, heard: Heard, tmp_path: Any
) -> None:
    target = Database(f"sqlite:///{tmp_path}/target.sqlite", "target")
    schema.sync(target, "cell")
    target.observer = heard
    bundle = copies.close_and_read(database, server, MOVE)
    bundle.instance.hidden, bundle.instance.vm_state = True, VmState.RESIZED
    copies.write(target, bundle, closed_by=MOVE, is_first=True)
    copies.write(target, bundle, closed_by=MOVE)
    instances.change_copy(target, server, MOVE, task_state=TaskState.RESIZE_FINISH)
    instances.change_copy(target, server, MOVE, task_state=None)
    with pytest.raises(errors.RecordsClosed):
        instances.update(database, server, task_state=TaskState.POWERING_OFF)
    assert heard == []
    for _attempt in range(2):
        instances.show(target, server, MOVE, former=database)
        instances.set_hidden(database, server, True)
    assert heard == [StateChange(server, ACTIVE, States(VmState.RESIZED, None, "server"))]
    heard.clear()
    # A hidden copy is not the server, whoever writes it.
    instances.reopen(database, server, MOVE)
    instances.update(database, server, vm_state=VmState.ERROR)
    instances.soft_delete(database, server)
    copies.hard_delete(database, server)
    assert heard == []
    target.close()


def test_a_failing_observer_breaks_nothing(server: str, database: Database, caplog: pytest.LogCaptureFixture) -> None:
    def fails(_database: Database, _change: StateChange) -> None:
        raise ZeroDivisionError

    database.observer = fails
    instances.update(database, server, vm_state=VmState.STOPPED)
    assert instances.get(database, server).vm_state is VmState.STOPPED
    assert f"A change of server {server} in cell was saved, but not observed" in caplog.text


def statements_of(database: Database, server: str) -> int:
    before = statements.snapshot()[database.name]
    with database.write() as connection:
        instances.swap_in(connection, server, task_state=TaskState.POWERING_OFF)
    instances.show(database, server, MOVE, former=database)
    return statements.snapshot()[database.name] - before


def test_states_are_read_only_for_an_observer(server: str, database: Database) -> None:
    assert statements_of(database, server) == 2
    database.observer = Heard()
    assert statements_of(database, server) > 2


@pytest.fixture
def cells(api: Database, tmp_path: Any) -> Iterator[Cells]:
    cell_records.save_cell(
        api, CellMapping(str(uuid.uuid4()), "cell1", "none:///", f"sqlite:///{tmp_path}/cell1.sqlite")
    )
    cell_records.save_cell(
        api, CellMapping(str(uuid.uuid4()), "cell2", "none:///", f"sqlite:///{tmp_path}/cell2.sqlite")
    )
    cells = Cells(api)
    yield cells
    cells.close()


def test_cells_are_observed_whenever_they_are_opened(cells: Cells) -> None:
    first, second = cells.mappings()
    opened, heard = cells.open(first), Heard()
    assert opened.observer is None
    cells.observe(heard)
    assert opened.observer is heard and cells.open(second).observer is heard
