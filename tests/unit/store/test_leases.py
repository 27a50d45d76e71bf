"""Leases go by the database's clock, in SQLite; `tests/integration/databases/test_leases_by_server_time.py` for the others."""

from __future__ import annotations

import pytest

from causeway.store.database import Database
from tests import lease_checks


@pytest.fixture
def database(api: Database) -> Database:
    return api


def test_the_clock_is_the_databases(database: Database) -> None:
    lease_checks.the_database_gives_the_time(database)


def test_a_lease_is_as_long_as_it_says(database: Database) -> None:
    lease_checks.a_lease_is_as_long_as_it_says(database)


@pytest.mark.parametrize("seconds", [4.0, 3600.0, -3600.0])
def test_the_database_decides_whose_lease_is_over(
    database: Database, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    lease_checks.the_database_decides_whose_lease_is_over(database, monkeypatch, seconds)


def test_moves_of_former_lives_are_free_at_once(database: Database) -> None:
    lease_checks.moves_of_former_lives_are_free_at_once(database)


def test_what_must_wait_is_not_abandoned(database: Database) -> None:
    lease_checks.what_must_wait_is_not_abandoned(database)
