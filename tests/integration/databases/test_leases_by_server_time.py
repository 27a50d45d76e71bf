"""Leases go by the database's clock, in PostgreSQL and MariaDB."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from causeway.store import schema
from causeway.store.api import journal
from causeway.store.database import Database
from tests import lease_checks


@pytest.fixture
def database(new_database: Callable[[str], str]) -> Iterator[Database]:
    database = Database(new_database("leases"), "api")
    schema.sync(database, "api")
    yield database
    with database.write() as connection:
        connection.execute(journal.OPERATIONS.delete())
    database.close()


@pytest.mark.parametrize(
    "check",
    [
        lease_checks.the_database_gives_the_time,
        lease_checks.a_lease_is_as_long_as_it_says,
        lease_checks.moves_of_former_lives_are_free_at_once,
        lease_checks.what_must_wait_is_not_abandoned,
    ],
)
def test_leases_hold_on_database_servers(database: Database, check: Callable[[Database], None]) -> None:
    check(database)


@pytest.mark.parametrize("seconds", [4.0, 3600.0, -3600.0])
def test_the_database_decides_whose_lease_is_over(
    database: Database, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    lease_checks.the_database_decides_whose_lease_is_over(database, monkeypatch, seconds)
