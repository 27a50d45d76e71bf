"""Who may change a server's volumes and ports while it moves: nobody; and while somebody does, no move begins.

An attach or detach begins with a row here, in one transaction with a look at the server's task: while the server has one, a
move's for example, it is refused (409). The request of a move looks for such rows in the transaction that gives the server its
task. Both take the server's own row first, so one of the two sees the other. A confirm gives the server no task: its migration's
status tells of it, which it sets before it looks here. In VERIFY_RESIZE nothing works on the server, and volumes come and go.

The row goes when the change has ended. If its conductor dies, another one takes it away (`causeway.conductor.recovery`).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from causeway import errors
from causeway.model.states import MOVE_TASKS, TaskState, VmState
from causeway.store.cell import instances
from causeway.store.cell_tables import DeviceChanges
from causeway.store.database import Database, utcnow

TABLE: sa.Table = DeviceChanges.__table__  # type: ignore[assignment]

# What changes a device's record only is refused during moves, and allowed during other tasks.
NOT_MOVING: tuple[TaskState | None, ...] = (None, *(task for task in TaskState if task not in MOVE_TASKS))


@dataclass(frozen=True)
class DeviceChange:
    """An attach or detach of a server that is under way; ``what`` is the action's name."""

    instance_uuid: str
    request_id: str
    what: str
    started_at: datetime


def begin_in(
    connection: sa.Connection, uuid: str, request_id: str, what: str, *, vm: Collection[VmState] | None = None
) -> None:
    """Keeps moves from beginning until `end`. Raises StateChanged if the server has a task, a move's for example."""
    instances.swap_in(connection, uuid, expected_task={None}, expected_vm=vm)
    row = {"instance_uuid": uuid, "request_id": request_id, "what": what, "started_at": utcnow()}
    connection.execute(TABLE.insert(), row)


def go_on(database: Database, uuid: str, request_id: str, what: str) -> None:
    """For the conductor that does it: what the API began, or begins it if that is forgotten by now. Raises StateChanged."""
    with database.write() as connection:
        mine = TABLE.update().where(TABLE.c.instance_uuid == uuid, TABLE.c.request_id == request_id)
        if not connection.execute(mine.values(started_at=utcnow())).rowcount:
            begin_in(connection, uuid, request_id, what)


def end(database: Database, uuid: str, request_id: str) -> None:
    """Not there: nothing happens."""
    with database.write() as connection:
        connection.execute(TABLE.delete().where(TABLE.c.instance_uuid == uuid, TABLE.c.request_id == request_id))


def refuse_move_in(connection: sa.Connection, uuid: str) -> None:
    """For the request of a move, which has taken the server's row: raises DevicesChanging if devices are being changed."""
    query = sa.select(TABLE.c.what).where(TABLE.c.instance_uuid == uuid).limit(1)
    what = connection.execute(query).scalar_one_or_none()
    if what is not None:
        raise errors.DevicesChanging(
            f"A volume or port of server {uuid} is being changed ({what}). Try again when that has ended."
        )


def begun_before(database: Database, before: datetime) -> list[DeviceChange]:
    """Changes that nobody has touched since then."""
    columns = (TABLE.c.instance_uuid, TABLE.c.request_id, TABLE.c.what, TABLE.c.started_at)
    with database.read() as connection:
        rows = connection.execute(sa.select(*columns).where(TABLE.c.started_at <= before))
        return [DeviceChange(*row) for row in rows]


def forget(database: Database, change: DeviceChange) -> bool:
    """Ends a change that was abandoned; False if somebody goes on with it."""
    same = (
        TABLE.c.instance_uuid == change.instance_uuid,
        TABLE.c.request_id == change.request_id,
        TABLE.c.started_at == change.started_at,
    )
    with database.write() as connection:
        return bool(connection.execute(TABLE.delete().where(*same)).rowcount)
