"""Archives and purges the rows of deleted servers.

Deleting a server only marks its rows. `archive` moves them to shadow tables, all rows of a server in one transaction for each
database: its migrations and moves in the API database, and the rest in its cell. It deletes the mapping. `purge` and
`purge_operations` delete from the shadow tables.

A copy that a move leaves is deleted for good and is never archived. If one comes here all the same, a server whose mapping names
another cell keeps its mapping and its migrations. A server with a move that has not ended is archived later.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from causeway.model.operations import BUILD
from causeway.model.sagas import ENDED, SagaState
from causeway.store.api import groups, mappings
from causeway.store.api_tables import ApiBase
from causeway.store.cell_tables import CellBase
from causeway.store.database import Database
from causeway.store.shadow_tables import (
    API_ARCHIVED,
    API_SHADOWS,
    ARCHIVED,
    OF_SERVER,
    SERVER_DELETED_AT,
    SHADOWS,
    archived_columns,
)

# Servers in one query.
BATCH = 100
INSTANCES = CellBase.metadata.tables["instances"]
ACTIONS = CellBase.metadata.tables["instance_actions"]
OPERATIONS = ApiBase.metadata.tables["moves"]


def archive(
    api: Database, database: Database, cell_uuid: str, *, max_rows: int, before: datetime | None = None
) -> Counter[str]:
    """Moves rows of servers that were deleted (earlier than ``before``), the oldest first; table -> rows moved.

    Stops at ``max_rows``. A server is moved as a whole; the first one is moved even if it has more rows.
    """
    moved: Counter[str] = Counter()
    for uuid, deleted_at in _deleted(database, before):
        rows = _rows_of(database, uuid)
        if moved and moved.total() + rows.total() > max_rows:
            break
        if _moves(api, uuid):
            continue
        # First what refers to the server. If this is interrupted, the rows in the cell still lead to it.
        moved += _archive_mapping(api, uuid, cell_uuid, deleted_at)
        _move(database, uuid)
        moved += rows
    return moved


def archive_never_built(api: Database, *, before: datetime | None = None) -> Counter[str]:
    """Moves the journal of servers that were deleted (earlier than ``before``) before they had a cell; table -> rows moved."""
    query = sa.select(OPERATIONS.c.instance_uuid, OPERATIONS.c.ended_at).where(
        OPERATIONS.c.recipe == BUILD,
        OPERATIONS.c.state == SagaState.FAILED.value,
        ~sa.exists().where(mappings.TABLE.c.instance_uuid == OPERATIONS.c.instance_uuid),
    )
    if before is not None:
        query = query.where(OPERATIONS.c.ended_at < before)
    moved: Counter[str] = Counter()
    with api.write() as connection:
        for uuid, ended_at in connection.execute(query.order_by(OPERATIONS.c.ended_at).limit(BATCH)).all():
            moved += _archive_operations(connection, uuid, ended_at)
    return moved


def _deleted(database: Database, before: datetime | None) -> list[tuple[str, datetime]]:
    query = (
        sa.select(INSTANCES.c.uuid, INSTANCES.c.deleted_at)
        .where(INSTANCES.c.deleted.is_(True))
        .order_by(INSTANCES.c.deleted_at, INSTANCES.c.uuid)
        .limit(BATCH)
    )
    if before is not None:
        query = query.where(INSTANCES.c.deleted_at < before)
    with database.read() as connection:
        return [(uuid, deleted_at) for uuid, deleted_at in connection.execute(query)]


def _moves(api: Database, uuid: str) -> bool:
    """Whether a server has a move that has not ended."""
    query = (
        sa.select(OPERATIONS.c.id).where(OPERATIONS.c.instance_uuid == uuid, OPERATIONS.c.state.not_in(ENDED)).limit(1)
    )
    with api.read() as connection:
        return connection.execute(query).first() is not None


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


def _archive_mapping(api: Database, uuid: str, cell_uuid: str, deleted_at: datetime) -> Counter[str]:
    """Deletes a server's mapping and archives its moves; table -> rows archived."""
    with api.write() as connection:
        gone = connection.execute(
            mappings.TABLE.delete().where(
                mappings.TABLE.c.instance_uuid == uuid, mappings.TABLE.c.cell_uuid == cell_uuid
            )
        ).rowcount
        if not gone:
            return Counter()
        connection.execute(mappings.SPECS.delete().where(mappings.SPECS.c.instance_uuid == uuid))
        connection.execute(groups.MEMBERS.delete().where(groups.MEMBERS.c.instance_uuid == uuid))
        return _archive_operations(connection, uuid, deleted_at)


def _archive_operations(connection: sa.Connection, uuid: str, deleted_at: datetime) -> Counter[str]:
    moved: Counter[str] = Counter()
    for name in API_ARCHIVED:
        table, shadow = ApiBase.metadata.tables[name], API_SHADOWS[name]
        chosen = table.c.instance_uuid == uuid
        moved[name] = _to_shadow(connection, table, shadow, chosen, {OF_SERVER: uuid, SERVER_DELETED_AT: deleted_at})
    return +moved


def _move(database: Database, uuid: str) -> None:
    with database.write() as connection:
        for name in ARCHIVED:
            _to_shadow(connection, _TABLES[name], SHADOWS[name], _of_server(name, uuid), {OF_SERVER: uuid})


def _to_shadow(
    connection: sa.Connection, table: sa.Table, shadow: sa.Table, chosen: sa.ColumnElement[bool], marks: dict[str, Any]
) -> int:
    """Moves rows, with ``marks`` in the columns that only the shadow table has. Returns their number."""
    values = [sa.literal(value, shadow.c[name].type) for name, value in marks.items()]
    columns = archived_columns(table)
    rows = sa.select(*values, *columns).where(chosen)
    connection.execute(shadow.insert().from_select([*marks, *(column.name for column in columns)], rows))
    return connection.execute(table.delete().where(chosen)).rowcount


def purge(database: Database, *, before: datetime | None = None) -> Counter[str]:
    """Deletes rows of servers deleted earlier than ``before`` (None: all rows) from the shadow tables."""
    instances = SHADOWS["instances"]
    query = sa.select(instances.c.uuid).where(_before(before))
    deleted: Counter[str] = Counter()
    with database.write() as connection:
        # `instances` is the last table, because the rows of the others are found by it.
        for name in ARCHIVED:
            table = SHADOWS[name]
            chosen = table.c[OF_SERVER].in_(query) if name != "instances" else _before(before)
            deleted[name] = connection.execute(table.delete().where(chosen)).rowcount
    return +deleted


def purge_operations(api: Database, *, before: datetime | None = None) -> Counter[str]:
    """The same for the shadow tables of the API database: migrations and the journal of moves."""
    deleted: Counter[str] = Counter()
    with api.write() as connection:
        for name, table in API_SHADOWS.items():
            chosen = sa.true() if before is None else table.c[SERVER_DELETED_AT] < before
            deleted[name] = connection.execute(table.delete().where(chosen)).rowcount
    return +deleted


def _before(limit: datetime | None) -> sa.ColumnElement[bool]:
    return sa.true() if limit is None else SHADOWS["instances"].c.deleted_at < limit
