"""Copies of servers, in PostgreSQL and MariaDB; and what their reads and transactions are."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

import pytest
import sqlalchemy as sa

from causeway.store import schema
from causeway.store.cell import instances
from causeway.store.cell.instances import TABLE
from causeway.store.database import Database
from tests import copy_checks


@pytest.fixture
def database(new_database: Callable[[str], str]) -> Iterator[Database]:
    database = Database(new_database("copied"), "cell")
    schema.sync(database, "cell")
    yield database
    database.close()


@pytest.mark.parametrize("check", copy_checks.ALL, ids=copy_checks.NAMES)
def test_copies_hold_on_database_servers(database: Database, check: Callable[[Database, str], None]) -> None:
    check(database, str(uuid.uuid4()))


def test_a_transaction_is_whole_or_nothing_and_a_read_sees_each_time_what_is_there(database: Database) -> None:
    one, other = str(uuid.uuid4()), str(uuid.uuid4())
    count = sa.select(sa.func.count()).where(TABLE.c.uuid.in_([one, other]))
    with pytest.raises(RuntimeError), database.write() as connection:
        instances.insert(connection, copy_checks.bundle_of(one).instance)
        raise RuntimeError
    with database.read() as reading:
        assert reading.scalar(count) == 0
        with database.write() as connection:
            instances.insert(connection, copy_checks.bundle_of(one).instance)
            assert reading.scalar(count) == 0
        assert reading.scalar(count) == 1
