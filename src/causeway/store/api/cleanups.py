"""Cleanups of fenced hosts: orders that they missed because work continued without them.

When a host comes back it carries its orders out before anything else; then their rows are deleted.
"""

from __future__ import annotations

import logging
import uuid as uuids
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec
import sqlalchemy as sa

from causeway.model.missed import MissedOrder
from causeway.store.api_tables import HostCleanups, Migrations
from causeway.store.database import Database, utcnow

LOG = logging.getLogger(__name__)

TABLE: sa.Table = HostCleanups.__table__  # type: ignore[assignment]
MIGRATIONS: sa.Table = Migrations.__table__  # type: ignore[assignment]


@dataclass
class Cleanup:
    """``cell_uuid``: of the host. ``missed``: None if this release can't read the order."""

    id: str
    host: str
    cell_uuid: str
    instance_uuid: str
    what: str
    missed: MissedOrder | None
    created_at: datetime


def id_of(host: str, instance_uuid: str, operation_id: str | None, what: str) -> str:
    """The id of a cleanup. It is computed from its content, so that a repeated note makes no second row."""
    return str(uuids.uuid5(uuids.UUID(instance_uuid), f"{host} {operation_id} {what}"))


def note_in(connection: sa.Connection, host: str, cell_uuid: str, missed: MissedOrder) -> None:
    """Notes an order that a host missed, or replaces the note."""
    connection.execute(TABLE.delete().where(TABLE.c.id == missed.id))
    connection.execute(
        TABLE.insert(),
        {
            "id": missed.id,
            "host": host,
            "cell_uuid": cell_uuid,
            "instance_uuid": missed.instance.uuid,
            "move_id": missed.token.operation_id if missed.token is not None else None,
            "what": missed.what.value,
            "missed": msgspec.to_builtins(missed, str_keys=True),
            "created_at": utcnow(),
        },
    )


def listed(database: Database, host: str | None = None) -> list[Cleanup]:
    """The cleanups of a host (None: of all hosts), in the order in which they were noted."""
    query = sa.select(TABLE).order_by(TABLE.c.created_at, TABLE.c.id)
    if host is not None:
        query = query.where(TABLE.c.host == host)
    with database.read() as connection:
        return [
            Cleanup(
                row.id, row.host, row.cell_uuid, row.instance_uuid, row.what, _read(row.id, row.missed), row.created_at
            )
            for row in connection.execute(query)
        ]


def _read(cleanup_id: str, missed: Any) -> MissedOrder | None:
    try:
        return msgspec.convert(missed, MissedOrder, str_keys=True)
    except msgspec.ValidationError as error:
        # A newer release may have written it, and will have it carried out when it runs everywhere.
        LOG.warning("Row %s of host_leftovers can't be read: %s", cleanup_id, error)
        return None


def hosts(database: Database, *, evacuation: str, evacuated: str) -> list[tuple[str, str]]:
    """The hosts that need cleaning, each with its cell: they missed orders, or servers were evacuated from them.

    ``evacuation``: the type of these migrations; ``evacuated``: their status if the host was not cleaned yet.
    """
    gone = sa.select(MIGRATIONS.c.source_compute, MIGRATIONS.c.source_cell).where(
        MIGRATIONS.c.migration_type == evacuation,
        MIGRATIONS.c.status == evacuated,
        MIGRATIONS.c.source_compute.is_not(None),
        MIGRATIONS.c.source_cell.is_not(None),
    )
    with database.read() as connection:
        rows = connection.execute(sa.select(TABLE.c.host, TABLE.c.cell_uuid).union(gone))
        return [(host, cell_uuid) for host, cell_uuid in rows]


def any_on(database: Database, host: str) -> bool:
    return bool(cells_of(database, host))


def cells_of(database: Database, host: str) -> list[str]:
    """The cell of a host that has cleanups; empty if it has none."""
    query = sa.select(TABLE.c.cell_uuid).where(TABLE.c.host == host).distinct()
    with database.read() as connection:
        return list(connection.execute(query).scalars())


def delete_of_cell(database: Database, cell_uuid: str) -> None:
    """Deletes the cleanups of a cell whose hosts will never come back."""
    with database.write() as connection:
        connection.execute(TABLE.delete().where(TABLE.c.cell_uuid == cell_uuid))


def delete(database: Database, host: str, ids: list[str]) -> None:
    """Deletes cleanups that were carried out or are no longer needed."""
    if ids:
        with database.write() as connection:
            connection.execute(TABLE.delete().where(TABLE.c.host == host, TABLE.c.id.in_(ids)))
