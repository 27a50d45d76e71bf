"""Connections that died while nobody used them are replaced before anybody notices."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import sqlalchemy as sa

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
