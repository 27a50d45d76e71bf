"""Whatever keeps a database from doing what it is asked to is one error: whoever looks from time to time looks again."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest
import sqlalchemy as sa

from causeway import errors
from causeway.store.database import Database, statements


def test_a_database_that_nobody_serves_fails_in_the_way_of_all(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/not-there/api.sqlite", "the API")
    with pytest.raises(errors.DatabaseFailed), database.read() as connection:
        connection.execute(sa.select(1))
    with pytest.raises(errors.DatabaseFailed):
        database.ping()


def test_no_free_connection_in_time_is_a_failure_of_the_database(tmp_path: Path) -> None:
    """Everybody's connections hang: no thread of ours may end of that."""
    database = Database(f"sqlite:///{tmp_path}/api.sqlite", "the API")
    pool = database.engine.pool
    assert isinstance(pool, sa.QueuePool)
    pool._timeout = 0.01
    with ExitStack() as held:
        for _ in range(pool.size() + pool._max_overflow):
            held.enter_context(database.read())
        with pytest.raises(errors.DatabaseFailed, match="try again later"):
            database.ping()
    database.close()


def test_what_a_table_refuses_is_for_the_caller(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/api.sqlite", "the API")
    with database.write() as connection:
        connection.execute(sa.text("CREATE TABLE things (name TEXT UNIQUE)"))
        connection.execute(sa.text("INSERT INTO things VALUES ('one')"))
    with pytest.raises(sa.exc.IntegrityError), database.write() as connection:
        connection.execute(sa.text("INSERT INTO things VALUES ('one')"))
    database.close()


def test_who_can_not_begin_to_write_gets_that_the_database_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process holds the file for longer than anybody waits."""
    monkeypatch.setattr("causeway.store.database.LOCK_TIMEOUT", 0)
    database = Database(f"sqlite:///{tmp_path}/api.sqlite", "the API")
    other = Database(f"sqlite:///{tmp_path}/api.sqlite", "another one")
    with other.write() as holding:
        holding.execute(sa.text("CREATE TABLE things (name TEXT)"))
        with pytest.raises(errors.DatabaseFailed, match="try again later"), database.write():
            pytest.fail("it began all the same")
    # The connection is whole: what comes next begins and is committed, or rolled back as one.
    with database.write() as connection:
        connection.execute(sa.text("INSERT INTO things VALUES ('one')"))
    with pytest.raises(ZeroDivisionError), database.write() as connection:
        connection.execute(sa.text("INSERT INTO things VALUES ('two')"))
        raise ZeroDivisionError
    with other.read() as connection:
        assert connection.execute(sa.text("SELECT name FROM things")).scalars().all() == ["one"]
    database.close()
    other.close()


def test_statements_are_counted_without_events_of_connections(tmp_path: Path) -> None:
    """SQLAlchemy would prepare these anew for each connection, a tenth of what a statement takes."""
    database = Database(f"sqlite:///{tmp_path}/api.sqlite", "counted here")
    with database.write() as connection:
        connection.execute(sa.text("CREATE TABLE things (name TEXT)"))
        connection.execute(sa.text("INSERT INTO things VALUES (:name)"), [{"name": "one"}, {"name": "two"}])
    with database.read() as connection:
        connection.execute(sa.text("SELECT name FROM things"))
    assert statements.snapshot()["counted here"] == 3
    # Its own: others in this process may listen to all engines.
    assert "_has_events" not in vars(database.engine)
    database.close()
