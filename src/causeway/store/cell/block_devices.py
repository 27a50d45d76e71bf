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
        return of_instance_in(connection, uuid)


def of_instance_in(connection: sa.Connection, uuid: str) -> list[BlockDevice]:
    """`of_instance` within the caller's transaction."""
    return [MAPPER.from_row(row) for row in connection.execute(_OF_INSTANCE, {"of_uuid": uuid})]


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


def swap_attachment(database: Database, uuid: str, old: str | None, new: str) -> bool:
    """Replaces the attachment of an unconnected volume.

    Returns False if it has neither ``old`` nor, from an earlier attempt, ``new``.
    """
    is_swappable = (TABLE.c.attachment_id == new) | TABLE.c.attachment_id.is_not_distinct_from(old)
    changes = MAPPER.changes({"attachment_id": new, "connection_info": None})
    with database.write() as connection:
        return bool(
            connection.execute(TABLE.update().where(TABLE.c.uuid == uuid, is_swappable).values(changes)).rowcount
        )


def change_in(connection: sa.Connection, before: Iterable[BlockDevice], after: Iterable[BlockDevice]) -> None:
    """Changes ``before``, as read in this transaction, to ``after``. Writes only the fields that differ."""
    old = {device.uuid: device for device in before}
    new = {device.uuid: device for device in after}
    for gone in old.keys() - new.keys():
        delete_in(connection, gone)
    for uuid in old.keys() & new.keys():
        changes = MAPPER.differences(old[uuid], new[uuid])
        if changes:
            update_in(connection, uuid, **changes)
    insert(connection, [device for uuid, device in new.items() if uuid not in old])


def delete_in(connection: sa.Connection, uuid: str) -> None:
    """Hard-deletes a mapping, because the volume was detached."""
    connection.execute(TABLE.delete().where(TABLE.c.uuid == uuid))


def delete(database: Database, uuid: str) -> None:
    with database.write() as connection:
        delete_in(connection, uuid)
