"""Databases of a Nova 34 with two cells, in SQLite: the rows that a real one had, with servers in many states."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from causeway.adopt.nova import tables
from causeway.store.foreign_schema import NOVA_API_REVISIONS, NOVA_CELL_REVISIONS

Row = dict[str, Any]
ROWS: dict[str, dict[str, list[Row]]] = json.loads((Path(__file__).parent / "rows" / "nova_34.json").read_text())
_TABLES = {table.name: table for table in vars(tables).values() if isinstance(table, sa.TableClause)}
_OF_API = {
    name
    for name in _TABLES
    if name in ROWS["api"]
    or name in ("build_requests", "flavor_projects", "project_user_quotas", "quota_classes")
}  # fmt: skip


class NovaOnDisk:
    """The databases in a folder. ``without``: columns that the release lacks, as "table.column"; or whole tables."""

    def __init__(
        self, folder: Path, rows: Mapping[str, Mapping[str, list[Row]]] = ROWS, *, without: Iterable[str] = ()
    ) -> None:
        self.folder = folder
        lacking = set(without)
        cells = deepcopy(rows["api"]["cell_mappings"])
        for cell in cells:
            cell["database_connection"] = self.url(cell["name"])
        for name in rows:
            with self.write(name) as connection:
                revision = (NOVA_API_REVISIONS if name == "api" else NOVA_CELL_REVISIONS)[-1]
                connection.exec_driver_sql("CREATE TABLE alembic_version (version_num TEXT)")
                connection.exec_driver_sql(f"INSERT INTO alembic_version VALUES ('{revision}')")
                for table in _TABLES.values():
                    if (table.name in _OF_API) is (name == "api") and table.name not in lacking:
                        _make(connection, table, lacking)
            for table_name, content in rows[name].items():
                if table_name in _TABLES and table_name not in lacking:
                    given = cells if table_name == "cell_mappings" else content
                    self.add(
                        name,
                        table_name,
                        *({k: v for k, v in r.items() if f"{table_name}.{k}" not in lacking} for r in given),
                    )
        self.conf = folder / "nova.conf"
        self.conf.write_text(f"[api_database]\nconnection = {self.url('api')}\n")

    def url(self, name: str) -> str:
        return f"sqlite:///{self.folder}/nova_{name}.sqlite"

    def add(self, name: str, table: str, *rows: Row) -> None:
        """Adds rows; keys that are not read are left out."""
        known = {column.name for column in _TABLES[table].columns}
        with self.write(name) as connection:
            for row in rows:
                given = {key: value for key, value in row.items() if key in known}
                columns = ", ".join(f'"{key}"' for key in given)
                values = ", ".join(f":{key}" for key in given)
                connection.execute(sa.text(f'INSERT INTO "{table}" ({columns}) VALUES ({values})'), given)

    def execute(self, name: str, statement: str) -> None:
        with self.write(name) as connection:
            connection.execute(sa.text(statement))

    @contextmanager
    def write(self, name: str) -> Iterator[sa.Connection]:
        engine = sa.create_engine(self.url(name))
        try:
            with engine.connect() as connection:
                # Nobody cuts the power.
                connection.exec_driver_sql("PRAGMA synchronous = OFF")
                yield connection
                connection.commit()
        finally:
            engine.dispose()

    def content(self) -> dict[str, list[tuple[Any, ...]]]:
        """Every row of every database."""
        found = {}
        for path in sorted(self.folder.glob("nova_*.sqlite")):
            engine = sa.create_engine(f"sqlite:///{path}")
            with engine.connect() as connection:
                for table in sorted(sa.inspect(connection).get_table_names()):
                    rows = connection.exec_driver_sql(f'SELECT * FROM "{table}"')
                    found[f"{path.stem}.{table}"] = [tuple(row) for row in rows]
            engine.dispose()
        return found


def _make(connection: sa.Connection, table: sa.TableClause, lacking: set[str]) -> None:
    columns = [column.name for column in table.columns if f"{table.name}.{column.name}" not in lacking]
    typed = [
        f'"{name}" INTEGER PRIMARY KEY' if name == "id" else f'"{name}"{" DEFAULT 0" if name == "deleted" else ""}'
        for name in columns
    ]
    connection.exec_driver_sql(f'CREATE TABLE "{table.name}" ({", ".join(typed)})')
    for name in {"instance_uuid", "uuid", "resource_id", "action_id"} & set(columns):
        connection.exec_driver_sql(f'CREATE INDEX "{table.name}_{name}" ON "{table.name}" ("{name}")')
