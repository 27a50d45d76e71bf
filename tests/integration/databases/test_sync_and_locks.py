"""A schema is upgraded while services hold locks: they are not in each other's way for long, and nobody is the victim."""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest
import sqlalchemy as sa

from causeway import errors
from causeway.store import schema
from causeway.store.database import Database

NEXT = """
import sqlalchemy as sa
from alembic import op

revision, down_revision, branch_labels, depends_on = "9999", "{newest}", None, None


def upgrade():
    for table in ("instances", "instance_actions"):
        if "added" not in {{known["name"] for known in sa.inspect(op.get_bind()).get_columns(table)}}:
            op.add_column(table, sa.Column("added", sa.Integer, nullable=False, server_default="1"))
"""


@pytest.fixture
def database(new_database: Callable[[str], str], request: pytest.FixtureRequest) -> Database:
    """Of a cell, with this version's schema."""
    database = Database(new_database(f"locks_{uuid4().hex[:8]}"), "a cell")
    schema.sync(database, "cell")
    request.addfinalizer(database.close)
    return database


@pytest.fixture
def later(database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next version, whose schema has a column more in two tables."""
    newest = schema.state(database, "cell").newest
    shutil.copytree(schema.MIGRATIONS, tmp_path / "migrations")
    path = tmp_path / "migrations/cell/versions/9999_next.py"
    path.write_text(NEXT.format(newest=newest))
    monkeypatch.setattr(schema, "MIGRATIONS", tmp_path / "migrations")
    monkeypatch.setattr(schema, "LOCK_SECONDS", 1)


def columns(database: Database, table: str) -> set[str]:
    return {column["name"] for column in sa.inspect(database.engine).get_columns(table)}


class Syncing(threading.Thread):
    def __init__(self, database: Database) -> None:
        super().__init__(name="sync")
        self._database = database
        self.failure: Exception | None = None
        self.start()

    def run(self) -> None:
        try:
            schema.sync(self._database, "cell")
        except Exception as failure:  # noqa: BLE001 - the test looks at it
            self.failure = failure


@pytest.mark.usefixtures("later")
def test_a_service_that_locks_tables_in_another_order_is_no_victim(database: Database) -> None:
    """It has one table and wants the other; the upgrade has changed that one and wants the first."""
    with database.write() as service:
        service.execute(sa.text("UPDATE instance_actions SET message = 'x'"))
        syncing = Syncing(database)
        while "added" not in columns(database, "instances") and syncing.is_alive():
            syncing.join(0.05)
        service.execute(sa.text("UPDATE instances SET hidden = hidden"))
    syncing.join(60)
    assert syncing.failure is None
    assert schema.state(database, "cell").current == "9999"
    assert "added" in columns(database, "instance_actions")


@pytest.mark.usefixtures("later")
def test_a_service_that_has_read_a_table_may_write_to_it(database: Database, caplog: pytest.LogCaptureFixture) -> None:
    """It reads in a transaction, the upgrade comes in between, and it writes: MariaDB would make the service the victim."""
    caplog.set_level(logging.DEBUG, schema.LOG.name)
    with database.write() as service:
        service.execute(sa.text("SELECT * FROM instances")).all()
        syncing = Syncing(database)
        while not (_waits_for_table(database) or caplog.records) and syncing.is_alive():
            syncing.join(0.05)
        service.execute(sa.text("UPDATE instances SET hidden = hidden"))
    syncing.join(60)
    assert syncing.failure is None
    assert "added" in columns(database, "instances")


def _waits_for_table(database: Database) -> bool:
    query = "SELECT count(*) FROM pg_locks WHERE NOT granted"
    if database.engine.dialect.name != "postgresql":
        query = "SELECT count(*) FROM information_schema.processlist WHERE state LIKE 'Waiting for table metadata%'"
    with database.read() as connection:
        return bool(connection.execute(sa.text(query)).scalar_one())


@pytest.mark.usefixtures("later")
def test_a_table_that_stays_locked_is_said_and_services_continued(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The upgrade can be repeated from where it stopped."""
    monkeypatch.setattr(schema, "LOOKS", 2)
    monkeypatch.setattr(schema, "LOCK_ATTEMPTS", 2)
    with database.write() as report:
        report.execute(sa.text("SELECT * FROM instance_actions")).all()
        syncing = Syncing(database)
        while "added" not in columns(database, "instances") and syncing.is_alive():
            syncing.join(0.05)
        with database.write() as service:
            service.execute(sa.text("UPDATE instance_actions SET message = 'x'"))
        syncing.join(60)
        assert isinstance(syncing.failure, errors.DatabaseFailed)
    assert schema.state(database, "cell").current != "9999"
    schema.sync(database, "cell")
    assert schema.state(database, "cell").current == "9999"
