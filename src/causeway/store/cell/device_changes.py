"""Who may change a server's volumes and ports while it moves: nobody; and while somebody does, no move begins.

An attach or detach begins with a row here, in one transaction with a look at the server's task: while the server has one, a
move's for example, it is refused (409). The request of a move looks for such rows in the transaction that gives the server its
task. Both take the server's own row first, so one of the two sees the other. A confirm gives the server no task: its migration's
status tells of it, which it sets before it looks here. In VERIFY_RESIZE nothing works on the server, and volumes come and go.

The row says which volume or port it is about, so that two requests don't change the same one at once, and who works on it:
nobody at first, then a conductor. It goes when the change has ended, for an attach together with the record that the server has
the device. If its conductor dies, or fails in the middle, another one settles it (`causeway.conductor.device_recovery`); who was
only slow finds out when it writes that down.
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

# The resource of an attach for which a port is to be made. (None: an older version began it, and nobody knows what it is about.)
NEW_PORT = ""

# What changes a device's record only is refused during moves, and allowed during other tasks.
NOT_MOVING: tuple[TaskState | None, ...] = (None, *(task for task in TaskState if task not in MOVE_TASKS))


@dataclass(frozen=True)
class DeviceChange:
    """An attach or detach of a server that is under way; ``what`` is the action's name.

    ``owner``: the life of a conductor (see `causeway.sagas.lives`); None: no conductor has begun to work on it.
    """

    id: int
    instance_uuid: str
    request_id: str
    what: str
    started_at: datetime
    resource_id: str | None
    owner: str | None


_COLUMNS = (
    TABLE.c.id,
    TABLE.c.instance_uuid,
    TABLE.c.request_id,
    TABLE.c.what,
    TABLE.c.started_at,
    TABLE.c.resource_id,
    TABLE.c.owner,
)


def begin_in(
    connection: sa.Connection,
    uuid: str,
    request_id: str,
    what: str,
    resource_id: str | None = None,
    *,
    vm: Collection[VmState] | None = None,
    owner: str | None = None,
) -> None:
    """Keeps moves from beginning until `end`.

    Raises StateChanged if the server has a task, a move's for example, or another request changes the same volume or port.
    """
    instances.swap_in(connection, uuid, expected_task={None}, expected_vm=vm)
    if resource_id:
        same = sa.select(TABLE.c.what).where(TABLE.c.instance_uuid == uuid, TABLE.c.resource_id == resource_id)
        other = connection.execute(same.limit(1)).scalar_one_or_none()
        if other is not None:
            raise errors.StateChanged(
                f"{resource_id} of server {uuid} is being changed by another request ({other})."
                " Try again when that has ended."
            )
    _insert(connection, uuid, request_id, what, resource_id, owner)


def _insert(
    connection: sa.Connection, uuid: str, request_id: str, what: str, resource_id: str | None, owner: str | None
) -> None:
    row = {
        "instance_uuid": uuid,
        "request_id": request_id,
        "what": what,
        "started_at": utcnow(),
        "resource_id": resource_id,
        "owner": owner,
    }
    connection.execute(TABLE.insert(), row)


def go_on(database: Database, uuid: str, request_id: str, what: str, resource_id: str, owner: str) -> None:
    """For the conductor that does it: what the API began, or begins it if that is forgotten by now. Raises StateChanged."""
    with database.write() as connection:
        begun = TABLE.update().where(*_of_owner(uuid, request_id, None))
        values = {"started_at": utcnow(), "resource_id": resource_id, "owner": owner}
        if connection.execute(begun.values(values)).rowcount:
            return
        others = sa.select(TABLE.c.owner).where(TABLE.c.instance_uuid == uuid, TABLE.c.request_id == request_id)
        if connection.execute(others).first() is not None:
            raise _taken(uuid, what)
        begin_in(connection, uuid, request_id, what, resource_id, owner=owner)


def end(database: Database, uuid: str, request_id: str, owner: str | None = None) -> None:
    """``owner`` None: that of the API, which no conductor has begun to work on. Not there: nothing happens."""
    with database.write() as connection:
        connection.execute(TABLE.delete().where(*_of_owner(uuid, request_id, owner)))


def end_in(connection: sa.Connection, uuid: str, request_id: str, what: str, owner: str) -> None:
    """`end` together with what the caller writes. Raises StateChanged if another conductor has taken the change up."""
    if not connection.execute(TABLE.delete().where(*_of_owner(uuid, request_id, owner))).rowcount:
        raise _taken(uuid, what)


def hold_in(connection: sa.Connection, uuid: str, request_id: str, what: str, owner: str) -> None:
    """Raises StateChanged if another conductor has taken the change up; else nobody does so within this transaction."""
    mine = TABLE.update().where(*_of_owner(uuid, request_id, owner))
    if not connection.execute(mine.values(started_at=utcnow())).rowcount:
        raise _taken(uuid, what)


def _of_owner(uuid: str, request_id: str, owner: str | None) -> tuple[sa.ColumnElement[bool], ...]:
    whose = TABLE.c.owner.is_(None) if owner is None else TABLE.c.owner == owner
    return TABLE.c.instance_uuid == uuid, TABLE.c.request_id == request_id, whose


def _taken(uuid: str, what: str) -> errors.StateChanged:
    return errors.StateChanged(f"The {what} of server {uuid} took so long that another conductor has taken it up.")


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
    with database.read() as connection:
        rows = connection.execute(sa.select(*_COLUMNS).where(TABLE.c.started_at <= before))
        return [DeviceChange(*row) for row in rows]


def of_server_in(connection: sa.Connection, uuid: str) -> list[DeviceChange]:
    """All that are under way."""
    return [DeviceChange(*row) for row in connection.execute(sa.select(*_COLUMNS).where(TABLE.c.instance_uuid == uuid))]


def leave(database: Database, uuid: str, request_id: str, what: str, resource_id: str, owner: str) -> None:
    """For who finds that another conductor has settled the change meanwhile: what came too late is to be settled again."""
    with database.write() as connection:
        _insert(connection, uuid, request_id, what, resource_id, owner)


def take_over(database: Database, change_id: int, started_at: datetime, owner: str) -> DeviceChange | None:
    """Makes an abandoned change the caller's; it, as it was before. None if somebody has touched it since ``started_at``."""
    abandoned = (TABLE.c.id == change_id, TABLE.c.started_at == started_at)
    with database.write() as connection:
        row = connection.execute(sa.select(*_COLUMNS).where(*abandoned)).one_or_none()
        taken = TABLE.update().where(*abandoned).values(started_at=utcnow(), owner=owner)
        return DeviceChange(*row) if row is not None and connection.execute(taken).rowcount else None


def settled(database: Database, change: DeviceChange, owner: str) -> None:
    """Ends a change that was taken over."""
    with database.write() as connection:
        connection.execute(TABLE.delete().where(TABLE.c.id == change.id, TABLE.c.owner == owner))


def forget(database: Database, change: DeviceChange) -> bool:
    """Ends a change that was abandoned; False if somebody goes on with it."""
    abandoned = TABLE.delete().where(TABLE.c.id == change.id, TABLE.c.started_at == change.started_at)
    with database.write() as connection:
        return bool(connection.execute(abandoned).rowcount)
