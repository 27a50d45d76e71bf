"""Connections that the server ends: nobody notices those that were idle, and none is missed in the pool afterwards."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from causeway import errors
from causeway.store import database as module
from causeway.store.connections import ConnectionBudget
from causeway.store.database import Database


def cut_all(url: str) -> None:
    """As a restart of the server does: every other connection to the database ends."""
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        if engine.dialect.name == "postgresql":
            ids = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            cut = "SELECT pg_terminate_backend({})"
        else:
            ids = "SELECT id FROM information_schema.processlist WHERE db = database() AND id <> connection_id()"
            cut = "KILL {}"
        for number in connection.execute(sa.text(ids)).scalars().all():
            connection.execute(sa.text(cut.format(number)))
    engine.dispose()


@pytest.mark.parametrize("budget", [None, ConnectionBudget(4)], ids=["of its own", "of a cell"])
def test_idle_connections_that_were_cut_are_replaced(
    new_database: Callable[[str], str], monkeypatch: pytest.MonkeyPatch, budget: ConnectionBudget | None
) -> None:
    url = new_database("cut")
    database = Database(url, "cut", budget=budget)
    with database.read() as one, database.read() as other:
        assert one.execute(sa.select(1)).scalar() == other.execute(sa.select(1)).scalar() == 1
    # So that nobody has to wait for it.
    monkeypatch.setattr(module, "PING_AFTER", 0.0)
    cut_all(url)
    database.ping()
    with database.read() as one, database.read() as other:
        assert one.execute(sa.select(1)).scalar() == other.execute(sa.select(1)).scalar() == 1
    database.close()


def never_returned(database: Database, budget: ConnectionBudget | None) -> int:
    """How many connections are missed in the pool although nobody uses one."""
    if budget is not None:
        return budget.open - len(budget._idle)
    pool: Any = database.engine.pool
    return int(pool.checkedout())


def slow(connection: sa.Connection) -> None:
    connection.execute(
        sa.text("SELECT pg_sleep(30)" if connection.dialect.name == "postgresql" else "SELECT SLEEP(30)")
    )


def runs(url: str) -> bool:
    """Whether the slow statement is at work."""
    engine = sa.create_engine(url)
    try:
        with engine.connect() as connection:
            if engine.dialect.name == "postgresql":
                query = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'SELECT pg_sleep%'"
            else:
                query = "SELECT count(*) FROM information_schema.processlist WHERE info LIKE 'SELECT SLEEP%'"
            return bool(connection.execute(sa.text(query)).scalar())
    finally:
        engine.dispose()


def cut_while(url: str, work: Callable[[], None]) -> None:
    """Cuts the connection on which ``work`` executes the slow statement; raises what ``work`` raises."""

    def cut() -> None:
        while not runs(url):
            pass
        cut_all(url)

    cutter = threading.Thread(target=cut)
    cutter.start()
    try:
        work()
    finally:
        cutter.join(30)


MOMENTS = ("before the statement", "in the middle of it", "after it")


@pytest.mark.parametrize("budget", [False, True], ids=["of its own", "of a cell"])
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("how", ["read", "write"])
def test_a_connection_that_was_cut_in_use_leaves_its_place_in_the_pool(
    new_database: Callable[[str], str], how: str, moment: str, budget: bool
) -> None:
    url, shared = new_database("places"), ConnectionBudget(8) if budget else None
    database = Database(url, "places", budget=shared)
    use = database.read if how == "read" else database.write

    def work() -> None:
        with use() as connection:
            if moment == "before the statement":
                cut_all(url)
            if moment == "in the middle of it":
                slow(connection)
            connection.execute(sa.select(1)).all()
            if moment == "after it":
                cut_all(url)

    for _time in range(3):
        try:
            cut_while(url, work) if moment == "in the middle of it" else work()
        except errors.DatabaseFailed:
            assert (how, moment) != ("read", "after it")
        else:
            # A read has its answer; a commit that has nothing to write may not even ask the server.
            assert moment == "after it"
        assert never_returned(database, shared) == 0
    database.ping()
    database.close()
