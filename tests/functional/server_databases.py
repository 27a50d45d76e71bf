"""The databases of the API's tests on a real server, not in SQLite files: ``pytest --databases postgresql tests/functional/api``.

What SQL means differs between servers: order, NULLs, comparison of strings, what is unique, types. They are made once, and
emptied for each test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import sqlalchemy as sa

from causeway.store import schema
from causeway.store.api_tables import ApiBase
from causeway.store.cell_tables import CellBase
from causeway.store.database import Database
from tests.integration.database_servers import database_server

NAMES = ("api", "cell0", "cell1", "cell2")


class ServerDatabases:
    """``url`` gives the URL of a database by its name."""

    def __init__(self, new_database: Callable[[str], str]) -> None:
        self._new_database = new_database
        self._engines: dict[str, sa.Engine] = {}
        # Those beside `NAMES` that a test asked for.
        self._further: set[str] = set()
        for name in NAMES:
            self._prepare(name)

    def url(self, name: str) -> str:
        if name not in self._engines:
            self._prepare(name)
        if name not in NAMES:
            self._further.add(name)
        return self._new_database(name)

    def _prepare(self, name: str) -> None:
        url = self._new_database(name)
        database = Database(url, name)
        schema.sync(database, "api" if name == "api" else "cell")
        database.close()
        self._engines[name] = sa.create_engine(url)

    def empty(self) -> None:
        names, self._further = {*NAMES, *self._further}, set()
        for name in names:
            engine = self._engines[name]
            metadata = (ApiBase if name == "api" else CellBase).metadata
            tables = metadata.sorted_tables
            if not {table.name for table in tables} <= set(sa.inspect(engine).get_table_names()):
                # A test broke this database.
                metadata.create_all(engine)
            filled = sa.union_all(
                *(sa.select(sa.literal(table.name)).where(sa.exists(sa.select(table))) for table in tables)
            )
            with engine.begin() as connection:
                with_rows = set(connection.scalars(filled))
                for table in reversed(tables):
                    if table.name in with_rows:
                        connection.execute(sa.delete(table))

    def close(self) -> None:
        for engine in self._engines.values():
            engine.dispose()


@contextmanager
def server_databases(kind: str) -> Iterator[ServerDatabases]:
    """``kind``: postgresql or mariadb."""
    with database_server(kind) as new_database:
        databases = ServerDatabases(new_database)
        yield databases
        databases.close()
