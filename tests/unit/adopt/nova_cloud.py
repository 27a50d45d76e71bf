"""Databases of a Nova with two cells: the rows that a real Nova 34 had, with servers in many states."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from tests.unit.adopt import nova_schemas

Row = dict[str, Any]
ROWS: dict[str, dict[str, list[Row]]] = json.loads((Path(__file__).parent / "rows" / "nova_34.json").read_text())
_FIRST = ("cell_mappings", "flavors", "aggregates", "instance_groups", "compute_nodes", "instances", "instance_actions")
# What no row may lack: tests name only what they are about.
_REQUIRED: dict[str, Row] = {
    "compute_nodes": {
        "cpu_info": "{}", "hypervisor_version": 0, "vcpus": 1, "vcpus_used": 0, "memory_mb": 1, "memory_mb_used": 0,
        "local_gb": 1, "local_gb_used": 0,
    },
    "build_requests": {"project_id": "p"},
    "instance_mappings": {"project_id": "p"},
    "services": {"report_count": 0},
    "pci_devices": {"label": "label_8086_1563"},
}  # fmt: skip


class NovaOnDisk:
    """The databases of a release of Nova, with its own schema. Columns and tables that it lacks are left out of the rows.

    ``url_of``: makes the database of a name on a server, and gives its URL; None: SQLite, in the folder.
    """

    def __init__(
        self,
        folder: Path,
        rows: Mapping[str, Mapping[str, list[Row]]] = ROWS,
        *,
        release: int = nova_schemas.NEWEST,
        url_of: Callable[[str], str] | None = None,
    ) -> None:
        self.folder = folder
        self._url_of = url_of
        self._names = list(rows)
        self._columns: dict[str, dict[str, set[str]]] = {}
        cells = deepcopy(rows["api"]["cell_mappings"])
        for cell in cells:
            cell["database_connection"] = self.url(cell["name"])
        for name in rows:
            with self.write(name) as connection:
                nova_schemas.make(connection, "api" if name == "api" else "cell", release)
                self._columns[name] = nova_schemas.columns(connection)
            if name != "api" and url_of is not None:
                self.add(name, "instances", *_deleted_instances(rows[name]))
            # Rows of a table that others refer to come before theirs.
            for table in sorted(rows[name], key=lambda each: _FIRST.index(each) if each in _FIRST else len(_FIRST)):
                self.add(name, table, *(cells if table == "cell_mappings" else rows[name][table]))
        self.conf = folder / "nova.conf"
        self.conf.write_text(f"[api_database]\nconnection = {self.url('api')}\n")

    def url(self, name: str) -> str:
        return f"sqlite:///{self.folder}/nova_{name}.sqlite" if self._url_of is None else self._url_of(name)

    def add(self, name: str, table: str, *rows: Row) -> None:
        """Adds rows; what the release lacks is left out."""
        known = self._columns[name].get(table, set())
        with self.write(name) as connection:
            quote = connection.dialect.identifier_preparer.quote_identifier
            is_postgresql = connection.dialect.name == "postgresql"
            for row in rows if known else ():
                whole: Row = {"deleted": 0} | _REQUIRED.get(table, {}) | row
                given = {key: value for key, value in whole.items() if key in known}
                if is_postgresql:
                    # Texts become what the columns are; numbers would not become booleans.
                    given = {key: value if value is None else str(value) for key, value in given.items()}
                columns, values = ", ".join(map(quote, given)), ", ".join(f":{key}" for key in given)
                connection.execute(sa.text(f"INSERT INTO {quote(table)} ({columns}) VALUES ({values})"), given)
            if is_postgresql and "id" in known:
                last = f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), max(id)) FROM {table}"
                connection.exec_driver_sql(last)

    def execute(self, name: str, statement: str) -> None:
        with self.write(name) as connection:
            connection.execute(sa.text(statement))

    @contextmanager
    def write(self, name: str) -> Iterator[sa.Connection]:
        engine = sa.create_engine(self.url(name))
        try:
            with engine.connect() as connection:
                if connection.dialect.name == "sqlite":
                    # Nobody cuts the power.
                    connection.exec_driver_sql("PRAGMA synchronous = OFF")
                yield connection
                connection.commit()
        finally:
            engine.dispose()

    def content(self) -> dict[str, list[tuple[Any, ...]]]:
        """Every row of every database."""
        found = {}
        for name in self._names:
            with self.write(name) as connection:
                quote = connection.dialect.identifier_preparer.quote_identifier
                for table in sorted(self._columns[name]):
                    rows = connection.exec_driver_sql(f"SELECT * FROM {quote(table)}")
                    found[f"{name}.{table}"] = sorted((tuple(row) for row in rows), key=repr)
        return found


def _deleted_instances(tables: Mapping[str, list[Row]]) -> Iterator[Row]:
    """The rows of servers that are gone, or in another cell, whose histories are there: servers of databases insist on them."""
    there = {row["uuid"] for row in tables.get("instances", [])}
    named = {row["instance_uuid"] for listed in tables.values() for row in listed if row.get("instance_uuid")}
    for number, uuid in enumerate(sorted(named - there), 9001):
        yield {"id": number, "uuid": uuid, "vm_state": "deleted", "deleted": number}
