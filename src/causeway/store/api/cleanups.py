"""What hosts are to clean up that an operator said to be dead, and that work continued without.

Each row is an order that the host missed. When it comes back it carries them out before anything else; then the rows go.
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
    """``cell_uuid``: the host's. ``missed``: None if this release can't read it."""

    id: str
    host: str
    cell_uuid: str
    instance_uuid: str
    what: str
    missed: MissedOrder | None
    created_at: datetime


def id_of(host: str, instance_uuid: str, move_id: str | None, what: str) -> str:
    """The same for the same thing on the same host: what is noted twice is there once."""
    return str(uuids.uuid5(uuids.UUID(instance_uuid), f"{host} {move_id} {what}"))


def note_in(connection: sa.Connection, host: str, cell_uuid: str, missed: MissedOrder) -> None:
    """Notes an order that a host missed, or notes it anew."""
    connection.execute(TABLE.delete().where(TABLE.c.id == missed.id))
    connection.execute(
        TABLE.insert(),
        {
            "id": missed.id,
            "host": host,
            "cell_uuid": cell_uuid,
            "instance_uuid": missed.instance.uuid,
            "move_id": missed.token.move_id if missed.token is not None else None,
            "what": missed.what.value,
            "missed": msgspec.to_builtins(missed, str_keys=True),
            "created_at": utcnow(),
        },
    )


def listed(database: Database, host: str | None = None) -> list[Cleanup]:
    """What is left on a host (None: on all), in the order in which it was noted."""
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
        # A newer release's, for example, which has it carried out when it runs everywhere.
        LOG.error("What is noted as %s in host_leftovers can't be read: %s", cleanup_id, error)
        return None


def hosts(database: Database, *, evacuation: str, evacuated: str) -> list[tuple[str, str]]:
    """The hosts on which something is left, each with its cell: orders that they missed, and servers evacuated from them.

    ``evacuation`` is the type of those migrations, ``evacuated`` the status of one whose host was not cleaned yet.
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
    """The cell of a host on which something is left; nothing is left: none."""
    query = sa.select(TABLE.c.cell_uuid).where(TABLE.c.host == host).distinct()
    with database.read() as connection:
        return list(connection.execute(query).scalars())


def delete_of_cell(database: Database, cell_uuid: str) -> None:
    """The cell's hosts will never come back."""
    with database.write() as connection:
        connection.execute(TABLE.delete().where(TABLE.c.cell_uuid == cell_uuid))


def delete(database: Database, host: str, ids: list[str]) -> None:
    """They were carried out, or are of no use any more."""
    if ids:
        with database.write() as connection:
            connection.execute(TABLE.delete().where(TABLE.c.host == host, TABLE.c.id.in_(ids)))
