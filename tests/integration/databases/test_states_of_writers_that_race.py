"""Observed changes of a server in PostgreSQL and MariaDB: each begins with the states that the one before it has left."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from causeway.model.flavor import Flavor
from causeway.model.instance import Instance
from causeway.store import schema
from causeway.store.cell import instances
from causeway.store.database import Database
from causeway.store.state_changes import StateChange

SERVER = "33333333-3333-3333-3333-333333333333"


def test_changes_of_writers_that_race_are_a_chain(new_database: Callable[[str], str]) -> None:
    database = Database(new_database("states"), "cell")
    schema.sync(database, "cell")
    with database.write() as connection:
        instances.insert(connection, Instance(SERVER, "project", "user", "first", Flavor("1", "f", 1, 1, 1)))
    heard: list[StateChange] = []
    database.observer = lambda _database, change: heard.append(change)
    start = threading.Barrier(8)

    def rename(number: int) -> None:
        start.wait()
        instances.update(database, SERVER, display_name=f"name{number}")

    with ThreadPoolExecutor(8, thread_name_prefix="rename") as pool:
        list(pool.map(rename, range(8)))
    following = {change.before.display_name: change.after.display_name for change in heard}
    chain = ["first"]
    while chain[-1] in following:
        chain.append(following[chain[-1]])
    assert len(chain) == 9 and chain[-1] == instances.get(database, SERVER).display_name
    database.close()
