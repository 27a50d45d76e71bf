"""A database server that is frozen keeps nobody waiting for as long as that lasts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest
import sqlalchemy as sa

from causeway import errors
from causeway.store import database as module
from causeway.store.database import Database
from tests.integration.database_servers import Server, own_server


@pytest.fixture(scope="module", params=["postgresql", "mariadb"])
def place(request: pytest.FixtureRequest) -> Iterator[tuple[Callable[[str], str], Server]]:
    with own_server(request.param) as made:
        yield made


@pytest.fixture
def server(place: tuple[Callable[[str], str], Server]) -> Server:
    return place[1]


@pytest.fixture
def database(place: tuple[Callable[[str], str], Server], monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    monkeypatch.setattr(module, "CONNECT_TIMEOUT", 1)
    # Every connection that is used again is pinged.
    monkeypatch.setattr(module, "PING_AFTER", 0.0)
    database = Database(place[0]("frozen"), "frozen", answer_timeout=2)
    with database.write() as connection:
        connection.exec_driver_sql("CREATE TABLE IF NOT EXISTS notes (text VARCHAR(20))")
    yield database
    database.close()


def in_a_statement(database: Database, server: Server) -> None:
    asleep = {"postgresql": "SELECT pg_sleep(1)"}.get(database.engine.dialect.name, "SELECT SLEEP(1)")
    with database.read() as connection:
        connection.execute(sa.select(1))
        # It is frozen while it works, before its own limit.
        threading.Timer(0.3, server.freeze).start()
        connection.exec_driver_sql(asleep)


def at_the_commit(database: Database, server: Server) -> None:
    with database.write() as connection:
        connection.exec_driver_sql("INSERT INTO notes VALUES ('lost')")
        server.freeze()


def before_a_read(database: Database, server: Server) -> None:
    server.freeze()
    database.ping()


@pytest.mark.parametrize("work", [in_a_statement, at_the_commit, before_a_read], ids=lambda work: str(work.__name__))
def test_who_waits_for_a_frozen_server_gets_that_the_database_failed(
    database: Database, server: Server, work: Callable[[Database, Server], None]
) -> None:
    failures: list[BaseException] = []

    def run() -> None:
        try:
            work(database, server)
        except errors.DatabaseFailed as failure:
            failures.append(failure)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        thread.join(30)
        waits = thread.is_alive()
    finally:
        server.thaw()
    assert not waits
    assert failures
    database.ping()
    assert database.engine.pool.checkedout() == 0  # type: ignore[attr-defined]
