"""Databases of Nova and others: Causeway says whose they are, and changes nothing in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa

from causeway import errors
from causeway.store import schema
from causeway.store.cell_tables import CellBase
from causeway.store.database import Database
from tests.unit.new_databases import new_database
from tests.unit.store.nova_databases import content, nova_api_database, nova_cell_database

KINDS: tuple[schema.Kind, ...] = ("api", "cell")


@contextmanager
def opened(url: str) -> Iterator[Database]:
    with closing(Database(url, "cell1")) as database:
        yield database


def with_tables(folder: Path, *statements: str) -> str:
    url = f"sqlite:///{folder}/other.sqlite"
    with opened(url) as database, database.write() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)
    return url


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("made", [nova_api_database, nova_cell_database])
@pytest.mark.parametrize("revision", ["newest", "of a later release", None])
def test_a_database_of_nova_is_recognized_and_left_as_it_is(
    tmp_path: Path, kind: schema.Kind, made: Callable[..., str], revision: str | None
) -> None:
    revisions: dict[str | None, dict[str, str | None]] = {
        "newest": {},
        "of a later release": {"revision": "0123456789ab"},
        None: {"revision": None},
    }
    url = made(tmp_path, **revisions[revision])
    before = content(url)
    with opened(url) as database:
        for ask in (schema.sync, schema.state):
            with pytest.raises(errors.Misconfigured, match=r"The database of cell1 is one of Nova's\."):
                ask(database, kind)
    assert content(url) == before


def test_a_database_of_nova_that_has_no_table_yet_is_recognized_by_its_revision(tmp_path: Path) -> None:
    url = with_tables(
        tmp_path,
        "CREATE TABLE alembic_version (version_num TEXT)",
        "INSERT INTO alembic_version VALUES ('8f2f1571d55b')",
    )
    with opened(url) as database, pytest.raises(errors.Misconfigured, match="one of Nova's"):
        schema.sync(database, "cell")


def test_a_database_of_other_software_is_left_as_it_is(tmp_path: Path) -> None:
    """Neutron's has two revisions at a time."""
    url = with_tables(
        tmp_path,
        "CREATE TABLE alembic_version (version_num TEXT)",
        "INSERT INTO alembic_version VALUES ('5c85685d616d'), ('0e6eff810791')",
    )
    before = content(url)
    with opened(url) as database, pytest.raises(errors.Misconfigured, match="belongs to other software"):
        schema.sync(database, "api")
    assert content(url) == before


def test_tables_of_nobody_are_not_mixed_with_ours(tmp_path: Path) -> None:
    url = with_tables(tmp_path, "CREATE TABLE instances (id INTEGER)", "CREATE TABLE services (id INTEGER)")
    before = content(url)
    with opened(url) as database, pytest.raises(errors.Misconfigured, match=r"did not make \(instances, services\)"):
        schema.sync(database, "cell")
    assert content(url) == before


def test_a_first_sync_that_was_interrupted_is_repeated(tmp_path: Path) -> None:
    """MariaDB keeps the tables that were made before it: there is no transaction around them."""
    url = with_tables(tmp_path, "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)")
    with opened(url) as database:
        with database.write() as connection:
            CellBase.metadata.tables["services"].create(connection)
        schema.sync(database, "cell")
        assert schema.state(database, "cell").current == schema.state(database, "cell").newest


@pytest.mark.parametrize("kind", KINDS)
def test_the_api_and_a_cell_do_not_share_a_database(tmp_path: Path, kind: schema.Kind) -> None:
    other: schema.Kind = "cell" if kind == "api" else "api"
    with new_database(tmp_path, kind) as database:
        before = content(str(database.url))
        with pytest.raises(
            errors.Misconfigured, match=r"is an API database, not one of a cell|is one of a cell, not an API"
        ):
            schema.sync(database, other)
        assert content(str(database.url)) == before


@pytest.mark.parametrize(
    ("revision", "whose"),
    [("9998", "a newer release made it. Upgrade the package."), ("0007", "one before 0.1.0 made it.")],
)
def test_an_own_schema_that_this_release_does_not_know_is_of_a_newer_or_an_older_one(
    tmp_path: Path, revision: str, whose: str
) -> None:
    with new_database(tmp_path, "cell") as database:
        with database.write() as connection:
            connection.execute(sa.text("UPDATE alembic_version SET version_num = :new"), {"new": revision})
        with pytest.raises(errors.DatabaseFailed) as refused:
            schema.sync(database, "cell")
    assert str(refused.value).endswith(f"has revision {revision}, which this release does not know: {whose}")
