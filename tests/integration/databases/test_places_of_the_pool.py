"""However a connection breaks, its place in the pool is free again, and the caller gets that the database failed."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
import sqlalchemy as sa

from causeway import errors, metrics
from causeway.store import database as module
from causeway.store.connections import ConnectionBudget
from causeway.store.database import Database
from tests.integration.databases.test_dead_connections import cut_all

BREAKS = 3
WRITE = "INSERT INTO notes (text) VALUES ('lost')"

# The connection is the driver's.
Cut = Callable[[Database, Any], None]
Break = Callable[[Database, Cut], None]


def driver_of(connection: sa.Connection) -> Any:
    return connection.connection.driver_connection


def during_a_read(database: Database, cut: Cut) -> None:
    """The server is at work on the statement."""
    asleep = {"postgresql": "SELECT pg_sleep(60)"}.get(database.engine.dialect.name, "SELECT SLEEP(60)")
    with database.read() as connection:
        connection.execute(sa.select(1))
        threading.Timer(0.2, cut, (database, driver_of(connection))).start()
        connection.execute(sa.text(asleep))


def between_reads(database: Database, cut: Cut) -> None:
    with database.read() as connection:
        connection.execute(sa.select(1))
        cut(database, driver_of(connection))
        connection.execute(sa.select(1))


def before_a_read(database: Database, cut: Cut) -> None:
    with database.read() as connection:
        cut(database, driver_of(connection))
        connection.execute(sa.select(1))


def at_the_return(database: Database, cut: Cut) -> None:
    with database.read() as connection:
        connection.execute(sa.select(1))
        cut(database, driver_of(connection))


def in_a_failed_block(database: Database, cut: Cut) -> None:
    with pytest.raises(ZeroDivisionError), database.read() as connection:
        connection.execute(sa.select(1))
        cut(database, driver_of(connection))
        raise ZeroDivisionError


def while_idle_before_a_read(database: Database, cut: Cut) -> None:
    with database.read() as connection:
        connection.execute(sa.select(1))
        unused = driver_of(connection)
    cut(database, unused)
    database.ping()


def at_the_beginning(database: Database, cut: Cut) -> None:
    with database.read() as connection:
        connection.execute(sa.select(1))
        unused = driver_of(connection)
    cut(database, unused)
    with database.write() as connection:
        connection.execute(sa.text(WRITE))


def before_a_write(database: Database, cut: Cut) -> None:
    with database.write() as connection:
        cut(database, driver_of(connection))
        connection.execute(sa.text(WRITE))


def between_writes(database: Database, cut: Cut) -> None:
    with database.write() as connection:
        connection.execute(sa.text(WRITE))
        cut(database, driver_of(connection))
        connection.execute(sa.text(WRITE))


def at_the_commit(database: Database, cut: Cut) -> None:
    with database.write() as connection:
        connection.execute(sa.text(WRITE))
        cut(database, driver_of(connection))


def at_the_roll_back(database: Database, cut: Cut) -> None:
    with pytest.raises(ZeroDivisionError), database.write() as connection:
        connection.execute(sa.text(WRITE))
        cut(database, driver_of(connection))
        raise ZeroDivisionError


def cut_by_the_server(database: Database, _connection: Any) -> None:
    cut_all(database.engine.url.render_as_string(hide_password=False))


def cut_in_the_network(_database: Database, connection: Any) -> None:
    number = connection.fileno() if hasattr(connection, "fileno") else connection._sock.fileno()
    with socket.socket(fileno=os.dup(number)) as stream:
        stream.shutdown(socket.SHUT_RDWR)


@pytest.fixture(params=["of its own", "of a cell"])
def database(new_database: Callable[[str], str], request: pytest.FixtureRequest) -> Iterator[Database]:
    budget = ConnectionBudget(8) if request.param == "of a cell" else None
    made = Database(new_database("places"), "the notes", budget=budget)
    with made.write() as connection:
        connection.execute(sa.text("DROP TABLE IF EXISTS notes"))
        connection.execute(sa.text("CREATE TABLE notes (text VARCHAR(10))"))
    yield made
    made.close()


def places(database: Database) -> int:
    """How many connections it may have at a time."""
    pool: Any = database.engine.pool
    most: int = pool.size() + pool._max_overflow if isinstance(pool, sa.QueuePool) else pool._budget.most_of_one
    return most


@pytest.mark.parametrize("cut", [cut_by_the_server, cut_in_the_network])
@pytest.mark.parametrize(
    "broken",
    [
        during_a_read,
        before_a_read,
        between_reads,
        at_the_return,
        in_a_failed_block,
        while_idle_before_a_read,
        at_the_beginning,
        before_a_write,
        between_writes,
        at_the_commit,
        at_the_roll_back,
    ],
)
def test_a_broken_connection_frees_its_place(
    database: Database, monkeypatch: pytest.MonkeyPatch, broken: Break, cut: Cut
) -> None:
    failures = []
    for _ in range(BREAKS):
        try:
            broken(database, cut)
        except errors.DatabaseFailed as failure:
            failures.append(failure)
    if broken in (during_a_read, before_a_read, between_reads, before_a_write, between_writes, at_the_commit):
        assert len(failures) == BREAKS
    if broken is at_the_return and database.engine.dialect.name != "postgresql":
        # It has its answer. PostgreSQL's driver notices only with the next statement.
        assert failures == []
    # What was cut and not used since is found before it is used, without waiting for it to be old.
    monkeypatch.setattr(module, "PING_AFTER", 0.0)
    database.engine.pool._timeout = 1.0  # type: ignore[attr-defined]
    with ExitStack() as held:
        for _ in range(places(database)):
            held.enter_context(database.read()).execute(sa.select(1))
    assert metrics.DATABASE_CONNECTIONS.labels("cell")._value.get() == 0
    with database.read() as connection:
        assert connection.execute(sa.text("SELECT count(*) FROM notes")).scalar_one() <= BREAKS
    with database.write() as connection:
        connection.execute(sa.text("DELETE FROM notes"))
        connection.execute(sa.text("INSERT INTO notes (text) VALUES ('kept')"))
    with database.read() as connection:
        assert connection.execute(sa.text("SELECT text FROM notes")).scalars().all() == ["kept"]
