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

    def __init__(self, url: Callable[[str], str]) -> None:
        self.url = url
        self._engines: dict[str, sa.Engine] = {}
        for name in NAMES:
            database = Database(url(name), name)
            schema.sync(database, "api" if name == "api" else "cell")
            database.close()
            self._engines[name] = sa.create_engine(url(name))

    def empty(self) -> None:
        for name, engine in self._engines.items():
            metadata = (ApiBase if name == "api" else CellBase).metadata
            tables = metadata.sorted_tables
            if not {table.name for table in tables} <= set(sa.inspect(engine).get_table_names()):
                # A test broke this database.
                metadata.create_all(engine)
            filled = sa.union_all(
                *(sa.select(sa.literal(table.name)).where(sa.exists(sa.select(table))) for table in tables)
            )
            with engine.begin() as connection:
                names = set(connection.scalars(filled))
                for table in reversed(tables):
                    if table.name in names:
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
