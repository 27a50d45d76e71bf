"""Claims of hosts by members of server groups: an order that all see alike. And how an older database gets the table."""

from __future__ import annotations

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
import sqlalchemy as sa

from causeway.model.host import ServerGroup
from causeway.store.api import group_claims, groups
from causeway.store.database import Database, utcnow


@pytest.fixture
def database(api: Database) -> Database:
    groups.create(api, ServerGroup("group", "group", "project", "user", "anti-affinity"))
    return api


def race(database: Database, count: int = 8) -> list[set[str]]:
    """What each of many that claim at the same time sees of the others."""
    start = threading.Barrier(count)

    def claim(number: int) -> set[str]:
        start.wait()
        return set(group_claims.take(database, "group", f"server-{number}", "host") or {})

    with ThreadPoolExecutor(count, thread_name_prefix="claim") as pool:
        return list(pool.map(claim, range(count)))


def test_of_two_that_race_exactly_one_sees_the_other(database: Database) -> None:
    seen = sorted(race(database), key=len)
    assert [len(others) for others in seen] == list(range(8))
    assert all(fewer < more for fewer, more in itertools.pairwise(seen))


def test_a_claim_that_is_repeated_keeps_its_place(database: Database) -> None:
    assert group_claims.take(database, "group", "one", "host1") == {}
    assert group_claims.take(database, "group", "two", "host1") == {"one": "host1"}
    assert group_claims.take(database, "group", "one", "host1") == {}


def test_a_claim_on_another_host_comes_last(database: Database) -> None:
    group_claims.take(database, "group", "one", "host1")
    group_claims.take(database, "group", "two", "host1")
    assert group_claims.take(database, "group", "one", "host2") == {"two": "host1"}


def test_what_is_released_or_too_old_is_not_seen(database: Database) -> None:
    group_claims.take(database, "group", "one", "host1")
    group_claims.release(database, "one")
    group_claims.take(database, "group", "two", "host1")
    with database.write() as connection:
        connection.execute(group_claims.TABLE.update().values(created_at=utcnow() - timedelta(hours=3)))
    assert group_claims.take(database, "group", "three", "host1") == {}


def test_a_group_that_is_gone_has_no_claims(database: Database) -> None:
    group_claims.take(database, "group", "one", "host1")
    groups.delete(database, "group")
    assert group_claims.take(database, "group", "one", "host1") is None
    with database.read() as connection:
        assert connection.execute(sa.select(group_claims.TABLE)).all() == []
