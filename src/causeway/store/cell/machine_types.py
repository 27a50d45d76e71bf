"""Finds the servers of a cell without a recorded machine type."""

from __future__ import annotations

import sqlalchemy as sa

from causeway.model.machine_type import recorded
from causeway.store.cell.instances import TABLE
from causeway.store.database import Database


def unset(database: Database) -> list[str]:
    """Their uuids, in order, without hidden copies and deleted servers."""
    wanted = sa.select(TABLE.c.uuid, TABLE.c.system_metadata).where(
        TABLE.c.deleted.is_(False), sa.or_(TABLE.c.hidden.is_(None), TABLE.c.hidden.is_(False))
    )
    with database.read() as connection:
        rows = connection.execute(wanted.order_by(TABLE.c.uuid))
        return [row.uuid for row in rows if recorded(row.system_metadata or {}) is None]
