"""Unfinished attaches and detaches of the previous release. This release has them in its journal.

Each row is an unfinished one. Only APIs of the previous release write them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from causeway.store.cell_tables import DeviceChanges
from causeway.store.database import Database

TABLE: sa.Table = DeviceChanges.__table__  # type: ignore[assignment]

# The resource of an attach for which a port is to be made. (None: a still older release began it, and did not say.)
NEW_PORT = ""


@dataclass(frozen=True)
class DeviceChange:
    """``what``: the action's name; ``owner``: the life of the conductor that had it."""

    id: int
    instance_uuid: str
    request_id: str
    what: str
    started_at: datetime
    resource_id: str | None
    owner: str | None


_COLUMNS = tuple(TABLE.c[name] for name in DeviceChange.__dataclass_fields__)


def begun_before(database: Database, before: datetime) -> list[DeviceChange]:
    """Changes that were not touched since ``before``."""
    with database.read() as connection:
        rows = connection.execute(sa.select(*_COLUMNS).where(TABLE.c.started_at <= before))
        return [DeviceChange(*row) for row in rows]


def end(database: Database, uuid: str, request_id: str) -> None:
    """Deletes the row of a request whose change is in the journal, or has ended."""
    with database.write() as connection:
        connection.execute(TABLE.delete().where(TABLE.c.instance_uuid == uuid, TABLE.c.request_id == request_id))


def is_left(database: Database, change: DeviceChange) -> bool:
    """Whether the change was not touched since it was read."""
    with database.read() as connection:
        same = sa.select(TABLE.c.id).where(TABLE.c.id == change.id, TABLE.c.started_at == change.started_at)
        return connection.execute(same).first() is not None
