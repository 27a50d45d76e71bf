"""Claims of hosts by members of server groups, in PostgreSQL and MariaDB: the lock of the group keeps them in order."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from causeway.model.host import ServerGroup
from causeway.store import schema
from causeway.store.api import group_claims, groups
from causeway.store.database import Database


def test_of_two_that_race_exactly_one_sees_the_other(new_database: Callable[[str], str]) -> None:
    database = Database(new_database("claims"), "api")
    schema.sync(database, "api")
    groups.create(database, ServerGroup("group", "group", "project", "user", "anti-affinity"))
    start = threading.Barrier(8)

    def claim(number: int) -> int:
        start.wait()
        return len(group_claims.take(database, "group", f"server-{number}", "host") or {})

    with ThreadPoolExecutor(8, thread_name_prefix="claim") as pool:
        assert sorted(pool.map(claim, range(8))) == list(range(8))
    database.close()
