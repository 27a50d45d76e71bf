"""Totals of what was accepted, in PostgreSQL and MariaDB: requests at once pass no limit together, and none is lost."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from causeway import errors
from causeway.model.host import ServerGroup
from causeway.store import schema
from causeway.store.api import accepted, groups
from causeway.store.database import Database

THREADS, WAIT = 8, 20


@pytest.fixture
def database(new_database: Callable[[str], str]) -> Iterator[Database]:
    database = Database(new_database("accepted"), "api")
    schema.sync(database, "api")
    yield database
    database.close()


@pytest.mark.parametrize("before", [0, 1])
@pytest.mark.parametrize("limit", [THREADS, 3])
def test_as_many_are_accepted_as_there_is_room_for(database: Database, limit: int, before: int) -> None:
    """``before``: whether the owner has a total already."""
    owner, start = accepted.of_project(f"{limit} and {before}"), threading.Barrier(THREADS)
    if before:
        with database.write() as connection:
            accepted.add_in(connection, owner, accepted.Total(), {"servers": 5}, {"servers": 5})

    def request(_number: int) -> bool:
        seen = accepted.read(database, owner)
        start.wait(WAIT)
        try:
            with database.write() as connection:
                accepted.add_in(connection, owner, seen, {"servers": 1}, {"servers": limit - 1})
        except errors.AcceptedMeanwhile:
            return False
        return True

    with ThreadPoolExecutor(THREADS, thread_name_prefix="request") as pool:
        assert sum(pool.map(request, range(THREADS))) == limit
    found = accepted.read(database, owner)
    assert found.amounts == {"servers": limit + 5 * before} and found.version == limit + before


def test_those_that_wait_for_one_another_are_all_counted(database: Database) -> None:
    start = threading.Barrier(THREADS)

    def check(used: int) -> None:
        if used >= 3:
            raise errors.OverQuota("too many")

    def make(number: int) -> bool:
        start.wait(WAIT)
        try:
            groups.create(database, ServerGroup(f"group-{number}", "group", "project", "user", "affinity"), check)
        except errors.OverQuota:
            return False
        return True

    def join(number: int) -> bool:
        start.wait(WAIT)
        try:
            with database.write() as connection:
                groups.add_members_in(connection, group, [f"server-{number}"], check)
        except errors.OverQuota:
            return False
        return True

    with ThreadPoolExecutor(THREADS, thread_name_prefix="make") as pool:
        assert sum(pool.map(make, range(THREADS))) == 3
        group = groups.list_for(database, "project")[0]
        assert sum(pool.map(join, range(THREADS))) == 3
