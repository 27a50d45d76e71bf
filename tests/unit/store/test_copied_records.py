"""Copies of servers, in SQLite; `tests/integration/databases/test_copies_on_servers.py` for the others."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from causeway.store import schema
from causeway.store.database import Database
from tests import copy_checks


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(f"sqlite:///{tmp_path}/cell.sqlite", "cell")
    schema.sync(database, "cell")
    yield database
    database.close()


@pytest.mark.parametrize("check", copy_checks.ALL, ids=copy_checks.NAMES)
def test_copies_hold_in_sqlite(database: Database, check: Callable[[Database, str], None]) -> None:
    check(database, str(uuid.uuid4()))
