"""The hosts of a server's move as columns that the database computes."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from causeway.model.flavor import Flavor
from causeway.model.instance import Instance, MigrationContext
from causeway.model.states import VmState
from causeway.store import schema
from causeway.store.cell import instances
from causeway.store.database import Database

SERVERS = 3000
INDICES = {"instances_host", "instances_move_source", "instances_move_dest"}


def server(number: int) -> Instance:
    found = Instance(str(uuid.uuid4()), "p", "u", f"s{number}", Flavor("1", "f", 1, 1, 1), host=f"host{number % 300}")
    if number % 2:
        found.vm_state = VmState.RESIZED
        found.migration_context = MigrationContext("m", source_host=f"host{(number + 1) % 300}", dest_host=found.host)
    return found


def test_reports_use_their_indices(new_database: Callable[[str], str]) -> None:
    database = Database(new_database("computed"), "cell")
    schema.sync(database, "cell")
    with database.write() as connection:
        for number in range(SERVERS):
            instances.insert(connection, server(number))

    with database.engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
        connection.execute(sa.text("ANALYZE instances" if _is_postgresql(database) else "ANALYZE TABLE instances"))
    found = instances.of_host_or_moving(database, "host8")
    # Ten are there, and ten that are on host7 left it.
    assert len(found) == 20 and {each.host for each in found} == {"host7", "host8"}
    sent: list[tuple[str, Any]] = []
    sa.event.listen(database.engine, "before_cursor_execute", lambda *call: sent.append((call[2], call[3])))
    instances.of_host_or_moving(database, "host8")
    statement, parameters = sent[-1]
    with database.read() as connection:
        plan = " ".join(str(row) for row in connection.exec_driver_sql(f"EXPLAIN {statement}", parameters))
    assert all(index in plan for index in INDICES), plan
    database.close()


def _is_postgresql(database: Database) -> bool:
    return database.engine.dialect.name == "postgresql"
