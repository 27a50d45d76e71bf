"""Copies of servers, in SQLite; `tests/integration/databases/test_copies_on_servers.py` for the others."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import pytest

from causeway.store.database import Database
from tests import copy_checks


@pytest.mark.parametrize("check", copy_checks.ALL, ids=copy_checks.NAMES)
def test_copies_hold_in_sqlite(database: Database, check: Callable[[Database, str], None]) -> None:
    check(database, str(uuid.uuid4()))
