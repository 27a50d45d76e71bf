"""Nova's schemas as its migrations make them, without Nova (`schemas`): on SQLite, PostgreSQL and MariaDB."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Literal

import sqlalchemy as sa

_FOLDER = Path(__file__).parent / "schemas"
_NEW_SECTION = "\n-- revision "
#: release -> "api" and "cell" -> the revision of its schema
HEADS: dict[int, dict[str, str]] = {
    int(release): heads for release, heads in json.loads((_FOLDER / "heads.json").read_text()).items()
}
#: object that is written -> the first release with a version of it -> "version" and the names of its "fields"
OBJECTS: dict[str, dict[int, dict[str, str]]] = {
    name: {int(release): each for release, each in found.items()}
    for name, found in json.loads((_FOLDER / "objects.json").read_text()).items()
}
#: the newest of Nova's releases
NEWEST = max(HEADS)
#: the first release of each schema
DIFFERENT = [release for release, heads in HEADS.items() if HEADS.get(release - 1) != heads]


def make(connection: sa.Connection, kind: Literal["api", "cell"], release: int) -> None:
    """Makes the tables that are read, in an empty database, as a release's own commands would have made them."""
    head = HEADS[release][kind]
    for revision, statements in _sections(kind, _server(connection)):
        for statement in statements:
            connection.exec_driver_sql(statement)
        if revision == head:
            break
    connection.exec_driver_sql("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)")
    connection.exec_driver_sql(f"INSERT INTO alembic_version VALUES ('{head}')")


def columns(connection: sa.Connection) -> dict[str, set[str]]:
    """table -> its columns."""
    found = sa.inspect(connection).get_multi_columns()
    return {table: {column["name"] for column in listed} for (_schema, table), listed in found.items()}


def _server(connection: sa.Connection) -> str:
    return {"mysql": "mariadb"}.get(connection.dialect.name, connection.dialect.name)


@cache
def _sections(kind: str, server: str) -> list[tuple[str, list[str]]]:
    """(revision, the statements of its migration), in order."""
    text = (_FOLDER / f"{kind}.{server}.sql").read_text()
    found = []
    for section in text.split(_NEW_SECTION)[1:]:
        revision, _, rest = section.partition("\n")
        found.append((revision, [each.strip() for each in rest.split(";\n") if each.strip()]))
    return found
