"""Migrations: one row per move, whichever cells hold the server."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from causeway import errors
from causeway.model.migration import Migration
from causeway.model.states import MIGRATION_ENDED, MIGRATION_TRANSITIONS, MigrationStatus
from causeway.store.api_tables import Migrations
from causeway.store.columns import RowMapper
from causeway.store.database import Database, utcnow

TABLE: sa.Table = Migrations.__table__  # type: ignore[assignment]
MAPPER = RowMapper(Migration, TABLE)
# Migrations in one statement.
_BATCH = 500
# Statements that are made once: SQLAlchemy needs longer to make one than SQLite to run it.
_UPDATE = TABLE.update().where(TABLE.c.uuid == sa.bindparam("of_uuid"))
_UPDATE_STATUS = _UPDATE.where(TABLE.c.status.in_(sa.bindparam("statuses_before", expanding=True)))


def insert_in(connection: sa.Connection, migration: Migration) -> None:
    migration.created_at = migration.created_at or utcnow()
    row = MAPPER.to_row(migration) | {"updated_at": migration.updated_at or migration.created_at}
    result = connection.execute(TABLE.insert(), row)
    migration.id = int(result.inserted_primary_key[0])  # type: ignore[index]


def get(database: Database, uuid: str) -> Migration:
    """Raises MigrationNotFound."""
    found = search(database, uuid=uuid)
    if not found:
        raise errors.MigrationNotFound(f"Migration {uuid} could not be found.")
    return found[0]


def of_uuids(database: Database, uuids: Iterable[str]) -> dict[str, Migration]:
    """The existing ones, by their uuids."""
    wanted = list(uuids)
    found: dict[str, Migration] = {}
    for first in range(0, len(wanted), _BATCH):
        query = sa.select(*MAPPER.columns).where(TABLE.c.uuid.in_(wanted[first : first + _BATCH]))
        with database.read() as connection:
            found |= {row.uuid: MAPPER.from_row(row) for row in connection.execute(query)}
    return found


def search(
    database: Database,
    *,
    uuid: str | None = None,
    migration_id: int | None = None,
    instance_uuid: str | None = None,
    statuses: list[str] | None = None,
    host: str | None = None,
    source_compute: str | None = None,
    migration_type: str | None = None,
    project_id: str | None = None,
    user_id: str | None = None,
    changes_since: datetime | None = None,
    changes_before: datetime | None = None,
    marker: str | None = None,
    limit: int | None = None,
) -> list[Migration]:
    """Migrations, newest first. ``host`` matches source or destination; ``marker`` is a uuid (MigrationNotFound)."""
    query = sa.select(*MAPPER.columns).order_by(TABLE.c.id.desc())
    equal = {
        "uuid": uuid,
        "id": migration_id,
        "instance_uuid": instance_uuid,
        "source_compute": source_compute,
        "migration_type": migration_type,
        "project_id": project_id,
        "user_id": user_id,
    }
    for name, value in equal.items():
        if value is not None:
            query = query.where(TABLE.c[name] == value)
    if statuses is not None:
        query = query.where(TABLE.c.status.in_(statuses))
    if host is not None:
        query = query.where(sa.or_(TABLE.c.source_compute == host, TABLE.c.dest_compute == host))
    if changes_since is not None:
        query = query.where(TABLE.c.updated_at >= changes_since)
    if changes_before is not None:
        query = query.where(TABLE.c.updated_at <= changes_before)
    if marker is not None:
        query = query.where(TABLE.c.id < get(database, marker).id)
    if limit is not None:
        query = query.limit(limit)
    with database.read() as connection:
        return [MAPPER.from_row(row) for row in connection.execute(query)]


def open_of_cell(database: Database, cell_uuid: str) -> set[str]:
    """The servers with a migration from or to a cell that has not ended. (Evacuations from dead hosts count as ended.)"""
    ended = [status.value for status in (*MIGRATION_ENDED, MigrationStatus.DONE)]
    query = sa.select(TABLE.c.instance_uuid).where(
        sa.or_(TABLE.c.source_cell == cell_uuid, TABLE.c.dest_cell == cell_uuid), TABLE.c.status.not_in(ended)
    )
    with database.read() as connection:
        return set(connection.execute(query).scalars())


def update_in(connection: sa.Connection, uuid: str, *, status: MigrationStatus | None = None, **changes: Any) -> None:
    """Changes a migration; a status that may not follow the present one raises StateChanged."""
    values = MAPPER.changes(changes) | {"updated_at": utcnow(), "of_uuid": uuid}
    statement = _UPDATE
    if status is not None:
        before = [old.value for old, following in MIGRATION_TRANSITIONS.items() if status in following or old is status]
        values |= {"status": status.value, "statuses_before": before}
        statement = _UPDATE_STATUS
    if not connection.execute(statement, values).rowcount:
        raise errors.StateChanged(
            f"Migration {uuid} is not there, or its status does not allow it to become {status or 'changed'}."
        )


def update(database: Database, uuid: str, *, status: MigrationStatus | None = None, **changes: Any) -> None:
    with database.write() as connection:
        update_in(connection, uuid, status=status, **changes)


def swap_status_in(connection: sa.Connection, uuid: str, old: MigrationStatus, new: MigrationStatus) -> bool:
    """Compare-and-swap of the status. Returns False if it was another one."""
    statement = TABLE.update().where(TABLE.c.uuid == uuid, TABLE.c.status == old.value)
    return bool(connection.execute(statement.values(status=new.value, updated_at=utcnow())).rowcount)


def delete_in(connection: sa.Connection, uuid: str) -> None:
    """Deletes a migration that never began."""
    connection.execute(TABLE.delete().where(TABLE.c.uuid == uuid))
