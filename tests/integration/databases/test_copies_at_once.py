"""Servers that are copied into one cell at the same time are not in each other's way."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from uuid import uuid4

import sqlalchemy as sa

from causeway.model.flavor import Flavor
from causeway.model.instance import Instance
from causeway.store import schema
from causeway.store.cell import copies, instances
from causeway.store.database import Database

WAIT = 20


def test_what_is_not_there_is_deleted_and_then_written_by_two_at_once(new_database: Callable[[str], str]) -> None:
    """As `copies.write` does, which replaces a copy that may be there: MariaDB locks the gap, at its usual level."""
    database = Database(new_database("copies"), "a cell")
    schema.sync(database, "cell")
    both = Barrier(2)

    def write(uuid: str) -> None:
        instance = Instance(uuid, "project", "user", "server", Flavor("1", "small", 1, 64, 1))
        with database.write() as connection:
            copies._delete(connection, uuid, hidden_only=False)
            both.wait(WAIT)
            instances.insert(connection, instance)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write, [str(uuid4()), str(uuid4())]))
    with database.read() as connection:
        assert connection.execute(sa.select(sa.func.count()).select_from(instances.TABLE)).scalar_one() == 2
    database.close()
