"""Archiving and purging what is left of deleted servers.

Deleting a server leaves its rows, marked. `archive` moves them to shadow tables, parents and children of a server in one
transaction, and removes what the API database still knew of it; `purge` deletes from the shadow tables.

A copy that a move leaves is deleted for good and never comes here. Should one all the same: a server whose mapping names
another cell keeps its mapping.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime

import sqlalchemy as sa

from causeway.store.api import groups, mappings
from causeway.store.cell_tables import CellBase
from causeway.store.database import Database
from causeway.store.shadow_tables import ARCHIVED, OF_SERVER, SHADOWS

# Servers looked for at once.
BATCH = 100
INSTANCES = CellBase.metadata.tables["instances"]
ACTIONS = CellBase.metadata.tables["instance_actions"]


def archive(
    api: Database, database: Database, cell_uuid: str, *, max_rows: int, before: datetime | None = None
) -> Counter[str]:
    """Moves rows of servers that were deleted (earlier than ``before``), the oldest first; table -> rows moved.

    Stops at ``max_rows``. A server is moved as a whole: one with more rows goes all the same if it is the first.
    """
    moved: Counter[str] = Counter()
    for uuid in _deleted(database, before):
        rows = _rows_of(database, uuid)
        if moved and moved.total() + rows.total() > max_rows:
            break
        # First what refers to the server: if this is cut short, it is found again by its rows in the cell.
        _forget(api, uuid, cell_uuid)
        _move(database, uuid)
        moved += rows
    return moved


def _deleted(database: Database, before: datetime | None) -> list[str]:
    query = (
        sa.select(INSTANCES.c.uuid)
        .where(INSTANCES.c.deleted.is_(True))
        .order_by(INSTANCES.c.deleted_at, INSTANCES.c.uuid)
        .limit(BATCH)
    )
    if before is not None:
        query = query.where(INSTANCES.c.deleted_at < before)
    with database.read() as connection:
        return list(connection.execute(query).scalars())


def _of_server(name: str, uuid: str) -> sa.ColumnElement[bool]:
    """The rows of one server in a table."""
    table = _TABLES[name]
    if name == "instances":
        return table.c.uuid == uuid
    if name == "instance_actions_events":
        return table.c.action_id.in_(sa.select(ACTIONS.c.id).where(ACTIONS.c.instance_uuid == uuid))
    return table.c.instance_uuid == uuid


_TABLES: dict[str, sa.Table] = {name: CellBase.metadata.tables[name] for name in ARCHIVED}


def _rows_of(database: Database, uuid: str) -> Counter[str]:
    with database.read() as connection:
        return Counter(
            {
                name: int(
                    connection.execute(
                        sa.select(sa.func.count()).select_from(_TABLES[name]).where(_of_server(name, uuid))
                    ).scalar_one()
                )
                for name in ARCHIVED
            }
        )


def _forget(api: Database, uuid: str, cell_uuid: str) -> None:
    with api.write() as connection:
        gone = connection.execute(
            mappings.TABLE.delete().where(
                mappings.TABLE.c.instance_uuid == uuid, mappings.TABLE.c.cell_uuid == cell_uuid
            )
        ).rowcount
        if gone:
            connection.execute(mappings.SPECS.delete().where(mappings.SPECS.c.instance_uuid == uuid))
            connection.execute(groups.MEMBERS.delete().where(groups.MEMBERS.c.instance_uuid == uuid))


def _move(database: Database, uuid: str) -> None:
    with database.write() as connection:
        for name in ARCHIVED:
            table, shadow = _TABLES[name], SHADOWS[name]
            rows = sa.select(sa.literal(uuid, shadow.c[OF_SERVER].type), *table.columns).where(_of_server(name, uuid))
            columns = [OF_SERVER, *(column.name for column in table.columns)]
            connection.execute(shadow.insert().from_select(columns, rows))
        for name in ARCHIVED:
            connection.execute(_TABLES[name].delete().where(_of_server(name, uuid)))


def purge(database: Database, *, before: datetime | None = None) -> Counter[str]:
    """Deletes from the shadow tables what is of servers deleted earlier than ``before`` (None: everything)."""
    instances = SHADOWS["instances"]
    query = sa.select(instances.c.uuid).where(_before(before))
    deleted: Counter[str] = Counter()
    with database.write() as connection:
        # Of all tables `instances` comes last: the others are found by it.
        for name in ARCHIVED:
            table = SHADOWS[name]
            chosen = table.c[OF_SERVER].in_(query) if name != "instances" else _before(before)
            deleted[name] = connection.execute(table.delete().where(chosen)).rowcount
    return +deleted


def _before(limit: datetime | None) -> sa.ColumnElement[bool]:
    return sa.true() if limit is None else SHADOWS["instances"].c.deleted_at < limit
