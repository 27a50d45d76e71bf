"""Changed request specs, in PostgreSQL and MariaDB."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

import pytest

from causeway.store import schema
from causeway.store.database import Database
from tests import spec_checks


@pytest.fixture
def database(new_database: Callable[[str], str]) -> Iterator[Database]:
    database = Database(new_database("specs"), "api")
    schema.sync(database, "api")
    yield database
    database.close()


@pytest.mark.parametrize("check", spec_checks.ALL)
def test_changed_specs_hold_on_database_servers(database: Database, check: Callable[[Database, str], None]) -> None:
    check(database, str(uuid.uuid4()))
