"""Database servers: a database of Nova's is recognized there, too, and a first sync that was interrupted is repeated."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import pytest
import sqlalchemy as sa

from causeway import errors
from causeway.store import schema
from causeway.store.cell_tables import CellBase
from causeway.store.database import Database

VERSIONS = "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)"


def filled(url: str, *statements: str) -> Database:
    database = Database(url, "cell1")
    with database.write() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)
    return database


def tables(database: Database) -> set[str]:
    with database.read() as connection:
        return set(sa.inspect(connection).get_table_names())


@pytest.mark.parametrize("kind", ["api", "cell"])
@pytest.mark.parametrize(
    ("name", "versions"),
    [
        ("nova", (VERSIONS, "INSERT INTO alembic_version VALUES ('2903cd72dc14')")),
        ("old_nova", ("CREATE TABLE migrate_version (version INTEGER)",)),
    ],
)
def test_a_database_of_nova_on_a_server_is_left_as_it_is(
    new_database: Callable[[str], str], kind: schema.Kind, name: str, versions: tuple[str, ...]
) -> None:
    made = ("CREATE TABLE instances (id INTEGER)", "CREATE TABLE instance_extra (id INTEGER)")
    with closing(filled(new_database(f"{name}_{kind}"), *made, *versions)) as database:
        before = tables(database)
        with pytest.raises(errors.Misconfigured, match="one of Nova's"):
            schema.sync(database, kind)
        assert tables(database) == before


def test_a_first_sync_that_was_interrupted_on_a_server_is_repeated(new_database: Callable[[str], str]) -> None:
    with closing(filled(new_database("interrupted"), VERSIONS)) as database:
        with database.write() as connection:
            CellBase.metadata.tables["services"].create(connection)
        schema.sync(database, "cell")
        assert schema.state(database, "cell").current == schema.state(database, "cell").newest
        assert set(CellBase.metadata.tables) <= tables(database)
