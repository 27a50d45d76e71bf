"""Locks of a table that somebody else holds: who writes to it stands there until they are released, in the middle of its work."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa


class Lock:
    """A table of one database is locked. ``waiting``: how many stand before it; ``by``: of those with this application name
    only, which PostgreSQL knows."""

    def __init__(self, connection: sa.Connection, looker: sa.Connection) -> None:
        self._connection, self._looker = connection, looker
        self._is_postgresql = connection.dialect.name == "postgresql"

    def waiting(self, by: str = "") -> int:
        return len(self.statements(by))

    def statements(self, by: str = "") -> list[str]:
        """What stands before it."""
        query = (
            "SELECT query FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
            if self._is_postgresql
            else "SELECT info FROM information_schema.processlist WHERE db = DATABASE() AND state LIKE 'Waiting for%'"
        )
        if by:
            assert self._is_postgresql
            query += " AND application_name = :by"
        return [str(each) for each in self._looker.execute(sa.text(query), {"by": by} if by else {}).scalars()]

    def is_awaited(self, patience: float, by: str = "") -> bool:
        """Whether somebody stands before it within so many seconds."""
        end = time.monotonic() + patience
        while not self.waiting(by):
            if time.monotonic() > end:
                return False
            # The server has nothing to wait on for this.
            time.sleep(0.005)
        return True


@contextmanager
def locked(url: str, table: str, *, for_reads: bool = False) -> Iterator[Lock]:
    """Nobody else writes to the table in the block; ``for_reads``: nor reads it."""
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with engine.connect() as holder, engine.connect() as looker:
        is_postgresql = engine.dialect.name == "postgresql"
        mode = "ACCESS EXCLUSIVE" if for_reads else "EXCLUSIVE"
        statements = (
            ["BEGIN", f"LOCK TABLE {table} IN {mode} MODE"]
            if is_postgresql
            else [f"LOCK TABLES {table} {'WRITE' if for_reads else 'READ'}"]
        )
        for statement in statements:
            holder.exec_driver_sql(statement)
        try:
            yield Lock(holder, looker)
        finally:
            holder.exec_driver_sql("ROLLBACK" if is_postgresql else "UNLOCK TABLES")
