"""A cell database of release 0.1.0 gets what is new, and keeps what it has."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa
from alembic import command

from causeway import errors
from causeway.model.flavor import Flavor
from causeway.model.instance import Instance
from causeway.store import schema
from causeway.store.cell import instances
from causeway.store.database import Database


@pytest.fixture
def server(database: Database) -> Instance:
    server = Instance("11111111-1111-1111-1111-111111111111", "project", "user", "old", Flavor("1", "f", 1, 1, 1))
    with database.write() as connection:
        instances.insert(connection, server)
    return server


def is_at(database: Database, revision: str) -> None:
    config = schema._config("cell")
    with database.engine.begin() as connection:
        config.attributes["connection"] = connection
        command.stamp(config, revision)


@pytest.mark.parametrize(("column", "before"), [("admin_password", "0008"), ("guest_name", "0009")])
def test_a_column_is_added(database: Database, server: Instance, column: str, before: str) -> None:
    with database.write() as connection:
        for table in ("instances", "shadow_instances"):
            connection.execute(sa.text(f"ALTER TABLE {table} DROP COLUMN {column}"))
    is_at(database, before)
    schema.sync(database, "cell")
    changes: dict[str, Any] = {column: "text"}
    instances.update(database, server.uuid, **changes)
    assert getattr(instances.get(database, server.uuid), column) == "text"


def test_a_schema_that_no_release_made_is_refused(database: Database) -> None:
    is_at(database, "0008")
    with database.write() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '0007'"))
    with pytest.raises(errors.DatabaseFailed, match="0007, which this release does not know"):
        schema.sync(database, "cell")
