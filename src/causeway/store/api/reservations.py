"""What a resize that waits for its end has reserved of volumes: in the memory from which its confirm or revert begins."""

from __future__ import annotations

import sqlalchemy as sa

from causeway.store.api.journal import MOVES


def end_in(connection: sa.Connection, move_id: str, volume_id: str) -> None:
    """The server has the volume no more: a revert is to know nothing of it. May be repeated."""
    # Two detaches of the server's run beside each other.
    query = sa.select(MOVES.c.data).where(MOVES.c.id == move_id).with_for_update()
    data = connection.execute(query).scalar_one_or_none()
    if data is None:
        return
    left = [pair for pair in data.get("attachments", []) if pair["volume_id"] != volume_id]
    connection.execute(MOVES.update().where(MOVES.c.id == move_id).values(data=data | {"attachments": left}))
