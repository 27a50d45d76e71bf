"""The volumes that a resize has reserved, in the memory with which its confirm or revert begins."""

from __future__ import annotations

import sqlalchemy as sa

from causeway.store.api.journal import OPERATIONS


def end_in(connection: sa.Connection, operation_id: str, volume_id: str) -> None:
    """Removes a volume that the server no longer has, so that a revert ignores it. May be repeated."""
    query = sa.select(OPERATIONS.c.data).where(OPERATIONS.c.id == operation_id).with_for_update()
    data = connection.execute(query).scalar_one_or_none()
    if data is None:
        return
    left = [pair for pair in data.get("attachments", []) if pair["volume_id"] != volume_id]
    connection.execute(
        OPERATIONS.update().where(OPERATIONS.c.id == operation_id).values(data=data | {"attachments": left})
    )
