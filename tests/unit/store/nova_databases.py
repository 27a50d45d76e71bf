"""Databases as Nova leaves them: with tables that only it has, others that have the same names as ours, and its revision."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa

from causeway.store.database import Database

NOVA_API_REVISION, NOVA_CELL_REVISION = "cdeec0c85668", "2903cd72dc14"
_API = {
    "cell_mappings": "uuid VARCHAR(36) NOT NULL, name TEXT, transport_url TEXT, database_connection TEXT, disabled BOOLEAN",
    "host_mappings": "cell_id INTEGER NOT NULL, host VARCHAR(255) NOT NULL",
    "instance_mappings": "instance_uuid VARCHAR(36) NOT NULL, cell_id INTEGER, project_id VARCHAR(255)",
    "flavors": "name VARCHAR(255) NOT NULL, memory_mb INTEGER NOT NULL, vcpus INTEGER NOT NULL",
    "flavor_extra_specs": "flavor_id INTEGER NOT NULL, key VARCHAR(255) NOT NULL, value VARCHAR(255)",
    "instance_group_policy": "group_id INTEGER NOT NULL, policy VARCHAR(255)",
}
_CELL = {
    "instances": "uuid VARCHAR(36) NOT NULL, host VARCHAR(255), vm_state VARCHAR(255)",
    "services": "host VARCHAR(255), binary VARCHAR(255), topic VARCHAR(255), report_count INTEGER NOT NULL, version INTEGER",
    "compute_nodes": "hypervisor_hostname VARCHAR(255), host VARCHAR(255), uuid VARCHAR(36)",
    "instance_extra": "instance_uuid VARCHAR(36) NOT NULL, flavor TEXT",
    "instance_system_metadata": "instance_uuid VARCHAR(36) NOT NULL, key VARCHAR(255)",
}


def nova_api_database(folder: Path, *, revision: str | None = NOVA_API_REVISION) -> str:
    """The URL of an API database with a cell. No ``revision``: of a release before Xena, whose version is kept otherwise."""
    url = _make(folder / "nova_api.sqlite", _API, revision)
    _execute(
        url,
        "INSERT INTO cell_mappings VALUES (1, '33333333-3333-3333-3333-333333333333', 'cell1', 'rabbit://q/',"
        " 'mysql://nova:hidden@db/nova', 0)",
    )
    return url


def nova_cell_database(folder: Path, *, revision: str | None = NOVA_CELL_REVISION) -> str:
    """The URL of a cell's database. ``revision``: see above."""
    return _make(folder / "nova_cell1.sqlite", _CELL, revision)


def content(url: str) -> dict[str, list[tuple[object, ...]]]:
    """All tables with all rows, and the columns' names as a first row."""
    database = Database(url, "content")
    try:
        with database.read() as connection:
            found: dict[str, list[tuple[object, ...]]] = {}
            for table in sorted(sa.inspect(connection).get_table_names()):
                rows = connection.exec_driver_sql(f"SELECT * FROM {table}")
                found[table] = [tuple(rows.keys()), *map(tuple, rows)]
            return found
    finally:
        database.close()


def _make(path: Path, tables: dict[str, str], revision: str | None) -> str:
    url = f"sqlite:///{path}"
    _execute(url, *(f"CREATE TABLE {name} (id INTEGER PRIMARY KEY, {columns})" for name, columns in tables.items()))
    if revision is None:
        _execute(url, "CREATE TABLE migrate_version (repository_id VARCHAR(250), version INTEGER)")
    else:
        _execute(
            url,
            "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)",
            f"INSERT INTO alembic_version VALUES ('{revision}')",
        )
    return url


def _execute(url: str, *statements: str) -> None:
    database = Database(url, "made")
    try:
        with database.write() as connection:
            for statement in statements:
                connection.exec_driver_sql(statement)
    finally:
        database.close()
