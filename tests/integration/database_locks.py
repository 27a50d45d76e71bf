"""Locks of a table that somebody else holds: who writes to it stands there until they are released, in the middle of its work."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa


class Lock:
    """A table of one database is locked. ``waiting``: how many stand before it."""

    def __init__(self, connection: sa.Connection, looker: sa.Connection) -> None:
        self._connection, self._looker = connection, looker
        self._is_postgresql = connection.dialect.name == "postgresql"

    def waiting(self) -> int:
        query = (
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
            if self._is_postgresql
            else "SELECT count(*) FROM information_schema.processlist WHERE db = DATABASE() AND state LIKE 'Waiting for%'"
        )
        return int(self._looker.execute(sa.text(query)).scalar_one())

    def statements(self) -> list[str]:
        """What stands before it, by PostgreSQL."""
        query = "SELECT query FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        return [str(each) for each in self._looker.execute(sa.text(query)).scalars()]

    def is_awaited(self, patience: float) -> bool:
        """Whether somebody stands before it within so many seconds."""
        end = time.monotonic() + patience
        while not self.waiting():
            if time.monotonic() > end:
                return False
            # The server has nothing to wait on for this.
            time.sleep(0.005)
        return True


@contextmanager
def locked(url: str, table: str) -> Iterator[Lock]:
    """Nobody else writes to the table in the block."""
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with engine.connect() as holder, engine.connect() as looker:
        is_postgresql = engine.dialect.name == "postgresql"
        statements = (
            ["BEGIN", f"LOCK TABLE {table} IN EXCLUSIVE MODE"] if is_postgresql else [f"LOCK TABLES {table} READ"]
        )
        for statement in statements:
            holder.exec_driver_sql(statement)
        try:
            yield Lock(holder, looker)
        finally:
            holder.exec_driver_sql("ROLLBACK" if is_postgresql else "UNLOCK TABLES")
