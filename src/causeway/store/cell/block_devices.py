"""Block device mappings of one cell."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa

from causeway.model.block_device import BlockDevice
from causeway.store.cell_tables import BlockDeviceMapping
from causeway.store.columns import RowMapper
from causeway.store.database import Database, utcnow

TABLE: sa.Table = BlockDeviceMapping.__table__  # type: ignore[assignment]
MAPPER = RowMapper(BlockDevice, TABLE)
_INSERT = TABLE.insert()


def _select() -> sa.Select[Any]:
    return sa.select(*MAPPER.columns).where(TABLE.c.deleted.is_(False)).order_by(TABLE.c.id)


_OF_INSTANCE = _select().where(TABLE.c.instance_uuid == sa.bindparam("of_uuid"))


def of_instance(database: Database, uuid: str) -> list[BlockDevice]:
    """The server's block devices in the order in which they were made."""
    with database.read() as connection:
        rows = connection.execute(_OF_INSTANCE, {"of_uuid": uuid}).all()
    return [MAPPER.from_row(row) for row in rows]


def insert(connection: sa.Connection, devices: Iterable[BlockDevice]) -> None:
    rows = []
    for device in devices:
        device.created_at = device.created_at or utcnow()
        rows.append(MAPPER.to_row(device) | {"deleted": False})
    if rows:
        connection.execute(_INSERT, rows)


def add(database: Database, device: BlockDevice) -> None:
    with database.write() as connection:
        insert(connection, [device])


def update_in(connection: sa.Connection, uuid: str, **changes: Any) -> None:
    connection.execute(TABLE.update().where(TABLE.c.uuid == uuid).values(MAPPER.changes(changes)))


def update(database: Database, uuid: str, **changes: Any) -> None:
    with database.write() as connection:
        update_in(connection, uuid, **changes)


def delete_in(connection: sa.Connection, uuid: str) -> None:
    """Removes a mapping for good: the volume was detached."""
    connection.execute(TABLE.delete().where(TABLE.c.uuid == uuid))


def delete(database: Database, uuid: str) -> None:
    with database.write() as connection:
        delete_in(connection, uuid)
