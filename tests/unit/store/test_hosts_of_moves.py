"""The servers that a host's report is about are found by indices, whatever else moves in the cell."""

from __future__ import annotations

import uuid
from typing import Any

import sqlalchemy as sa

from causeway.model.flavor import Flavor
from causeway.model.instance import Instance, MigrationContext
from causeway.model.states import TaskState, VmState
from causeway.store.cell import instances
from causeway.store.database import Database

FLAVOR = Flavor("1", "f", 1, 1, 1)
HERE, THERE = "host-here", "host-there"


def add(database: Database, host: str | None, *, move: tuple[str, str] | None = None, **more: Any) -> str:
    server = Instance(str(uuid.uuid4()), "project", "user", "server", FLAVOR, host=host, **more)
    if move is not None:
        server.migration_context = MigrationContext(str(uuid.uuid4()), source_host=move[0], dest_host=move[1])
    with database.write() as connection:
        instances.insert(connection, server)
    return server.uuid


def concerned(database: Database, host: str) -> set[str]:
    return {server.uuid for server in instances.of_host_or_moving(database, host)}


def test_servers_that_move_from_a_host_or_to_it_are_found(database: Database) -> None:
    resides = add(database, HERE)
    goes = add(database, THERE, move=(HERE, THERE), vm_state=VmState.RESIZED)
    comes = add(database, THERE, move=(THERE, HERE), task_state=TaskState.RESIZE_MIGRATING)
    hidden = add(database, None, move=(HERE, THERE), hidden=True, task_state=TaskState.RESIZE_FINISH)
    add(database, THERE)
    add(database, THERE, move=(THERE, "host-elsewhere"), vm_state=VmState.RESIZED)
    # It does not move any more: what its record still says of its move counts for nobody.
    add(database, THERE, move=(HERE, THERE))
    assert concerned(database, HERE) == {resides, goes, comes, hidden}


def test_a_move_that_ends_or_goes_elsewhere(database: Database) -> None:
    server = add(database, THERE, move=(HERE, THERE), vm_state=VmState.RESIZED)
    other = MigrationContext(str(uuid.uuid4()), source_host="host-elsewhere", dest_host=THERE)
    instances.update(database, server, migration_context=other)
    assert concerned(database, HERE) == set() and concerned(database, "host-elsewhere") == {server}
    instances.update(database, server, migration_context=None, vm_state=VmState.ACTIVE)
    assert concerned(database, "host-elsewhere") == set() and concerned(database, THERE) == {server}


def test_no_report_reads_all_servers(database: Database) -> None:
    sent: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_more: Any) -> None:
        sent.append((statement, parameters))

    for number in range(50):
        add(database, f"host-{number}", move=(f"host-{number + 1}", f"host-{number}"), vm_state=VmState.RESIZED)
    sa.event.listen(database.engine, "before_cursor_execute", note)
    assert len(instances.of_host_or_moving(database, "host-7")) == 2
    sa.event.remove(database.engine, "before_cursor_execute", note)
    (statement, parameters) = sent[-1]
    with database.read() as connection:
        plan = [row.detail for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)]
    assert not [line for line in plan if line.startswith("SCAN")], plan
    used = {index for index in ("instances_host", "instances_move_source", "instances_move_dest") if index in str(plan)}
    assert used == {"instances_host", "instances_move_source", "instances_move_dest"}, plan
