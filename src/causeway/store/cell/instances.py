"""Servers of one cell.

A move between cells closes a server's row to all other writers when it reads it for the last time, in one transaction
(``closed_by``). Earlier writes are part of the copy. Later writers get `RecordsClosed`, read the mapping again and write where
the server lives (`causeway.store.servers`). Every function here that changes a row respects this, except those that end it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any

import sqlalchemy as sa

from causeway import errors
from causeway.model.instance import Instance
from causeway.model.states import DELETING, MOVE_TASKS, TaskState, VmState
from causeway.store import state_changes
from causeway.store.cell_tables import BlockDeviceMapping, Instances, Tags
from causeway.store.columns import RowMapper
from causeway.store.database import Database, parts, utcnow
from causeway.store.state_changes import States

TABLE: sa.Table = Instances.__table__  # type: ignore[assignment]
TAGS: sa.Table = Tags.__table__  # type: ignore[assignment]
MAPPER = RowMapper(Instance, TABLE)
SELECT = sa.select(*MAPPER.columns)
# Statements that every step of a move sends are made once: SQLAlchemy needs longer to make one than SQLite to run it.
_FIND_ANY = SELECT.where(TABLE.c.uuid == sa.bindparam("of_uuid"))
_FIND = _FIND_ANY.where(TABLE.c.deleted.is_(False))
_FIND_WITH_TAGS, _FIND_ANY_WITH_TAGS = (
    find.add_columns(TAGS.c.tag).select_from(TABLE.outerjoin(TAGS, TAGS.c.resource_id == TABLE.c.uuid))
    for find in (_FIND, _FIND_ANY)
)
_TAGS_OF = sa.select(TAGS.c.tag).where(TAGS.c.resource_id == sa.bindparam("of_uuid"))
_FIND_AND_HOLD = _FIND.with_for_update()
_IS_CLOSED = sa.select(TABLE.c.closed_by, TABLE.c.vm_state, TABLE.c.task_state).where(
    TABLE.c.uuid == sa.bindparam("of_uuid"), TABLE.c.deleted.is_(False)
)
_FIND_STATES = (
    sa.select(TABLE.c.vm_state, TABLE.c.task_state, TABLE.c.display_name, TABLE.c.hidden)
    .where(TABLE.c.uuid == sa.bindparam("of_uuid"), TABLE.c.deleted.is_(False))
    .with_for_update()
)
_INSERT, _INSERT_TAGS = TABLE.insert(), TAGS.insert()
# What a server's row has only while its task is running.
_WITHOUT_SECRETS = {"admin_password": None}


def row_of(instance: Instance) -> dict[str, Any]:
    """The row of an instance, including the columns that repeat parts of its flavor."""
    row = MAPPER.to_row(instance)
    row.update(_flavor_columns(instance))
    return row


def _flavor_columns(instance: Instance) -> dict[str, Any]:
    flavor = instance.flavor
    return {"flavorid": flavor.flavorid, "vcpus": flavor.vcpus, "memory_mb": flavor.memory_mb}


def insert(connection: sa.Connection, instance: Instance, *, closed_by: str | None = None) -> None:
    """Inserts a server with its tags, within the caller's transaction. ``closed_by``: the move that copies it."""
    instance.created_at = instance.created_at or utcnow()
    connection.execute(_INSERT, row_of(instance) | {"closed_by": closed_by})
    if instance.tags:
        connection.execute(_INSERT_TAGS, [{"resource_id": instance.uuid, "tag": tag} for tag in instance.tags])
    changes = state_changes.of(connection)
    if changes is not None and closed_by is None and not instance.hidden:
        # Until now the server was a build request, with these states.
        before = States(VmState.BUILDING, TaskState.SCHEDULING, instance.display_name)
        changes.note(instance.uuid, before, States(instance.vm_state, instance.task_state, instance.display_name))


def find(database: Database, uuid: str, *, deleted: bool = False, with_tags: bool = True) -> Instance | None:
    """The server, or None. Also finds hidden ones and, with ``deleted``, deleted ones."""
    if with_tags:
        statement = _FIND_ANY_WITH_TAGS if deleted else _FIND_WITH_TAGS
    else:
        statement = _FIND_ANY if deleted else _FIND
    with database.read() as connection:
        # A row for each tag.
        rows = connection.execute(statement, {"of_uuid": uuid}).all()
    if not rows:
        return None
    return from_row(rows[0], sorted(row.tag for row in rows if row.tag is not None) if with_tags else [])


def get(database: Database, uuid: str, *, deleted: bool = False, with_tags: bool = True) -> Instance:
    """The server; raises ServerNotFound."""
    instance = find(database, uuid, deleted=deleted, with_tags=with_tags)
    if instance is None:
        raise errors.ServerNotFound(uuid)
    return instance


def get_in(connection: sa.Connection, uuid: str, *, with_tags: bool = True) -> Instance:
    """The server, with its row locked until the end of the transaction. Raises ServerNotFound."""
    row = connection.execute(_FIND_AND_HOLD, {"of_uuid": uuid}).one_or_none()
    if row is None:
        raise errors.ServerNotFound(uuid)
    tags = list(connection.execute(_TAGS_OF, {"of_uuid": uuid}).scalars()) if with_tags else []
    return from_row(row, sorted(tags))


def from_row(row: sa.Row[Any], tags: list[str]) -> Instance:
    """The server of a row that has `MAPPER`'s columns."""
    # NULL in old rows means: not hidden.
    return MAPPER.from_row(row, tags=tags, hidden=bool(row._mapping[TABLE.c.hidden]))


def select(database: Database, query: sa.Select[Any], *, with_tags: bool = True) -> list[Instance]:
    """The servers of a query that was built on `SELECT`."""
    with database.read() as connection:
        rows = connection.execute(query).all()
        tags: dict[str, list[str]] = {}
        if rows and with_tags:
            uuids = [row._mapping[TABLE.c.uuid] for row in rows]
            for resource, tag in connection.execute(
                sa.select(TAGS.c.resource_id, TAGS.c.tag).where(TAGS.c.resource_id.in_(uuids)).order_by(TAGS.c.tag)
            ):
                tags.setdefault(resource, []).append(tag)
    return [from_row(row, tags.get(row._mapping[TABLE.c.uuid], [])) for row in rows]


def of_host(database: Database, host: str) -> list[Instance]:
    """Servers whose record names this host, including hidden copies."""
    return select(database, SELECT.where(TABLE.c.host == host, TABLE.c.deleted.is_(False)))


def busy_since(database: Database, before: datetime) -> list[Instance]:
    """Servers with a task that have not changed since ``before``, without hidden copies."""
    changed = sa.func.coalesce(TABLE.c.updated_at, TABLE.c.created_at)
    busy = SELECT.where(TABLE.c.task_state.is_not(None), TABLE.c.deleted.is_(False), changed <= before)
    return [instance for instance in select(database, busy, with_tags=False) if not instance.hidden]


def take_up(database: Database, instance: Instance) -> bool:
    """Lets one of several conductors recover a server's abandoned task. Returns False if another one was quicker."""
    unchanged = (TABLE.c.uuid == instance.uuid, TABLE.c.task_state == instance.task_state)
    since = TABLE.c.updated_at.is_not_distinct_from(instance.updated_at)
    with database.write() as connection:
        statement = TABLE.update().where(*unchanged, since, TABLE.c.closed_by.is_(None))
        changed = connection.execute(statement.values(updated_at=utcnow()))
        return bool(changed.rowcount)


def of_host_or_moving(database: Database, host: str) -> list[Instance]:
    """`of_host`, and servers that move from or to the host or wait there for confirm or revert; without their tags."""
    moves = sa.or_(
        TABLE.c.vm_state == VmState.RESIZED.value, TABLE.c.task_state.in_([state.value for state in MOVE_TASKS])
    )
    # Separate queries, each with an index. Otherwise the database would read all servers.
    concerned = sa.or_(
        TABLE.c.host == host,
        sa.and_(TABLE.c.move_source_host == host, moves),
        sa.and_(TABLE.c.move_dest_host == host, moves),
    )
    return select(database, SELECT.where(concerned, TABLE.c.deleted.is_(False)), with_tags=False)


def update_in(connection: sa.Connection, uuid: str, **changes: Any) -> None:
    """Sets fields of a server within the caller's transaction. Raises ServerNotFound, RecordsClosed."""
    if _update(connection, uuid, changes, None, None) == 0:
        _found_open(connection, uuid)
        raise errors.ServerNotFound(uuid)


def update(
    database: Database,
    uuid: str,
    *,
    expected_task: Collection[TaskState | None] | None = None,
    expected_vm: Collection[VmState] | None = None,
    **changes: Any,
) -> None:
    """Sets fields of a server. With expectations this is a compare-and-swap on its states.

    Raises StateChanged if the states are not as expected, ServerNotFound, and RecordsClosed.
    """
    with database.write() as connection:
        swap_in(connection, uuid, expected_task=expected_task, expected_vm=expected_vm, **changes)


def swap_in(
    connection: sa.Connection,
    uuid: str,
    *,
    expected_task: Collection[TaskState | None] | None = None,
    expected_vm: Collection[VmState] | None = None,
    **changes: Any,
) -> None:
    """`update` within the caller's transaction."""
    if _update(connection, uuid, changes, expected_task, expected_vm):
        return
    found = _found_open(connection, uuid)
    raise errors.StateChanged(
        f"Server {uuid} is being changed by another request: its state is {found.vm_state}, "
        f"its task is {found.task_state or 'none'}. Try again when that has ended."
    )


def end_task_in(connection: sa.Connection, uuid: str, tasks: Collection[TaskState], **changes: Any) -> bool:
    """Ends one of these tasks of a server and sets its fields. A server that is being deleted keeps its task.

    Returns False, and changes nothing, if it has another task or none. Raises ServerNotFound, RecordsClosed.
    """
    if swap_if_in(connection, uuid, tasks, task_state=None, **changes):
        return True
    return swap_if_in(connection, uuid, DELETING, **changes)


def swap_if_in(connection: sa.Connection, uuid: str, tasks: Collection[TaskState | None], **changes: Any) -> bool:
    """Sets fields of a server that has one of these tasks. Returns False, and changes nothing, if it has another one or none.

    Raises ServerNotFound, RecordsClosed.
    """
    try:
        swap_in(connection, uuid, expected_task=tasks, **changes)
    except errors.StateChanged as change:
        if isinstance(change, errors.RecordsClosed):
            raise
        return False
    return True


def _found_open(connection: sa.Connection, uuid: str) -> sa.Row[Any]:
    """The states of an existing server that may be written. Raises ServerNotFound, RecordsClosed."""
    found = connection.execute(_IS_CLOSED, {"of_uuid": uuid}).one_or_none()
    if found is None:
        raise errors.ServerNotFound(uuid)
    if found.closed_by is not None:
        raise errors.RecordsClosed.for_server(uuid)
    return found


def touch_in(connection: sa.Connection, uuid: str) -> None:
    """Locks a server's row, so that its other records can be changed. Raises ServerNotFound, RecordsClosed."""
    update_in(connection, uuid)


def close_in(connection: sa.Connection, uuid: str, operation_id: str) -> None:
    """Closes a server's row, so that only this move can write to it from here on. Raises ServerNotFound."""
    statement = TABLE.update().where(TABLE.c.uuid == uuid, TABLE.c.deleted.is_(False))
    if not connection.execute(statement.values(closed_by=operation_id)).rowcount:
        raise errors.ServerNotFound(uuid)


def reopen(database: Database, uuid: str, operation_id: str) -> None:
    """Opens a row that this move closed: the server stays where it is."""
    with database.write() as connection:
        connection.execute(TABLE.update().where(*_closed_by(uuid, operation_id)).values(closed_by=None))


def show(database: Database, uuid: str, operation_id: str, *, former: Database | None = None) -> None:
    """Makes the copy that this move wrote the server itself.

    ``former``: where the server was until now. An observer sees what differs as a change; without it, it sees none.
    """
    before = _states(former, uuid) if former is not None and database.observer is not None else None
    with database.write() as connection:
        copy = None if before is None else connection.execute(_FIND_STATES, {"of_uuid": uuid}).one_or_none()
        mine = sa.or_(TABLE.c.closed_by.is_(None), TABLE.c.closed_by == operation_id)
        statement = TABLE.update().where(TABLE.c.uuid == uuid, TABLE.c.deleted.is_(False), mine)
        shown = connection.execute(statement.values(hidden=False, closed_by=None, updated_at=utcnow())).rowcount
        # A repeated step finds the copy shown already.
        if before is not None and copy is not None and copy.hidden and shown:
            _note(connection, uuid, before, copy._mapping)


def _states(database: Database, uuid: str) -> States | None:
    """A server's states, also of a hidden copy."""
    query = sa.select(TABLE.c.vm_state, TABLE.c.task_state, TABLE.c.display_name).where(TABLE.c.uuid == uuid)
    with database.read() as connection:
        row = connection.execute(query).one_or_none()
    return None if row is None else States.of_row(row._mapping)


def change_copy(database: Database, uuid: str, operation_id: str, **changes: Any) -> None:
    """Sets fields of the copy that this move wrote and keeps closed, if there is one."""
    with database.write() as connection:
        connection.execute(TABLE.update().where(*_closed_by(uuid, operation_id)).values(MAPPER.changes(changes)))


def set_hidden(database: Database, uuid: str, hidden: bool) -> None:
    """Sets the hidden flag, which follows from the server's mapping, also if the row is closed."""
    with database.write() as connection:
        connection.execute(TABLE.update().where(TABLE.c.uuid == uuid).values(hidden=hidden, updated_at=utcnow()))


def set_place(database: Database, uuid: str, **changes: Any) -> None:
    """Writes an administrator's correction of a server's place, also if an unknown move closed its row."""
    row = changes | {"updated_at": utcnow()}
    with database.write() as connection:
        connection.execute(
            TABLE.update().where(TABLE.c.uuid == uuid, TABLE.c.deleted.is_(False)).values(closed_by=None)
        )
        row.pop("closed_by", None)
        update_in(connection, uuid, **row)


def closed_by(database: Database, uuid: str) -> tuple[str | None, bool]:
    """(the move that closed the row, whether the row is a hidden copy). Raises ServerNotFound."""
    query = sa.select(TABLE.c.closed_by, TABLE.c.hidden).where(TABLE.c.uuid == uuid, TABLE.c.deleted.is_(False))
    with database.read() as connection:
        found = connection.execute(query).one_or_none()
    if found is None:
        raise errors.ServerNotFound(uuid)
    return found.closed_by, bool(found.hidden)


def _closed_by(uuid: str, operation_id: str) -> tuple[sa.ColumnElement[bool], ...]:
    return TABLE.c.uuid == uuid, TABLE.c.closed_by == operation_id


def _update(
    connection: sa.Connection,
    uuid: str,
    changes: dict[str, Any],
    expected_task: Collection[TaskState | None] | None,
    expected_vm: Collection[VmState] | None,
) -> int:
    tags = changes.pop("tags", None)
    values = MAPPER.changes(changes)
    if "task_state" in values and values["task_state"] is None:
        values |= _WITHOUT_SECRETS
    if "flavor" in changes:
        flavor = changes["flavor"]
        values |= {"flavorid": flavor.flavorid, "vcpus": flavor.vcpus, "memory_mb": flavor.memory_mb}
    values.setdefault("updated_at", utcnow())
    statement = _update_statement(
        tuple(sorted(values)),
        None if expected_task is None else tuple(expected_task),
        None if expected_vm is None else tuple(expected_vm),
    )
    before = None if state_changes.OBSERVED.isdisjoint(values) else _observed_before(connection, uuid)
    changed = connection.execute(statement, values | {"of_uuid": uuid}).rowcount
    if changed and before is not None:
        _note(connection, uuid, before, values)
    if changed and tags is not None:
        replace_tags(connection, uuid, tags)
    return changed


def _observed_before(connection: sa.Connection, uuid: str) -> States | None:
    """The states of a server that will change. None if nobody observes this, there is no such server, or it is a hidden copy."""
    if state_changes.of(connection) is None:
        return None
    row = connection.execute(_FIND_STATES, {"of_uuid": uuid}).one_or_none()
    return None if row is None or row.hidden else States.of_row(row._mapping)


def _note(connection: sa.Connection, uuid: str, before: States, values: Mapping[Any, Any]) -> None:
    """Notes for the observer that columns have these values now."""
    changes = state_changes.of(connection)
    if changes is not None:
        changes.note(uuid, before, before.changed(values))


@cache
def _update_statement(
    columns: tuple[str, ...],
    expected_task: tuple[TaskState | None, ...] | None,
    expected_vm: tuple[VmState, ...] | None,
) -> sa.Update:
    statement = TABLE.update().where(
        TABLE.c.uuid == sa.bindparam("of_uuid"), TABLE.c.deleted.is_(False), TABLE.c.closed_by.is_(None)
    )
    if expected_task is not None:
        statement = statement.where(_one_of(TABLE.c.task_state, expected_task))
    if expected_vm is not None:
        statement = statement.where(TABLE.c.vm_state.in_([state.value for state in expected_vm]))
    return statement.values({name: sa.bindparam(name) for name in columns})


def _one_of(column: sa.ColumnElement[Any], wanted: Collection[TaskState | None]) -> sa.ColumnElement[bool]:
    values = [state.value for state in wanted if state is not None]
    condition: sa.ColumnElement[bool] = column.in_(values) if values else sa.false()
    return sa.or_(condition, column.is_(None)) if None in wanted else condition


def replace_tags(connection: sa.Connection, uuid: str, tags: Iterable[str]) -> None:
    connection.execute(TAGS.delete().where(TAGS.c.resource_id == uuid))
    rows = [{"resource_id": uuid, "tag": tag} for tag in tags]
    if rows:
        connection.execute(TAGS.insert(), rows)


def soft_delete(database: Database, uuid: str) -> None:
    """`soft_delete_in` as one transaction."""
    with database.write() as connection:
        soft_delete_in(connection, uuid)


def soft_delete_in(connection: sa.Connection, uuid: str) -> None:
    """Marks a server and its block devices deleted. Its actions and events stay readable."""
    now, states = utcnow(), {"vm_state": VmState.DELETED.value, "task_state": None}
    before = _observed_before(connection, uuid)
    connection.execute(
        TABLE.update()
        .where(TABLE.c.uuid == uuid, TABLE.c.deleted.is_(False))
        .values(deleted=True, deleted_at=now, terminated_at=now, updated_at=now, **states, **_WITHOUT_SECRETS)
    )
    if before is not None:
        _note(connection, uuid, before, states)
    connection.execute(TAGS.delete().where(TAGS.c.resource_id == uuid))
    devices: sa.Table = BlockDeviceMapping.__table__  # type: ignore[assignment]
    connection.execute(devices.update().where(devices.c.instance_uuid == uuid).values(deleted=True))


@dataclass
class CellUsage:
    """The usage of a project in one cell: (servers, vCPUs, MiB of memory).

    ``moving``: servers that may have a copy in another cell, by uuid: (vCPUs, MiB). They are not in ``settled``.
    """

    settled: tuple[int, int, int] = (0, 0, 0)
    moving: dict[str, tuple[int, int]] = field(default_factory=dict)


def usage(
    database: Database, project_id: str, user_id: str | None = None, *, without: Collection[str] = ()
) -> CellUsage:
    """Reads a project's usage in one statement: sums of the servers at rest, and each moving server separately.

    ``without``: servers that the caller counts.

    Soft-deleted servers do not count: restoring one is checked like a new request.
    """
    moves = sa.or_(
        TABLE.c.hidden.is_(True),
        TABLE.c.vm_state == VmState.RESIZED.value,
        TABLE.c.task_state.in_([state.value for state in MOVE_TASKS]),
    )
    query = (
        sa.select(
            sa.case((moves, TABLE.c.uuid), else_="").label("who"),
            sa.func.count(),
            sa.func.sum(TABLE.c.vcpus),
            sa.func.sum(TABLE.c.memory_mb),
        )
        .where(
            TABLE.c.project_id == project_id,
            TABLE.c.deleted.is_(False),
            TABLE.c.vm_state != VmState.SOFT_DELETED.value,
        )
        .group_by(sa.literal_column("who"))
    )
    if user_id is not None:
        query = query.where(TABLE.c.user_id == user_id)
    for part in parts(sorted(without)):
        query = query.where(TABLE.c.uuid.not_in(part))
    found = CellUsage()
    with database.read() as connection:
        for who, count, vcpus, memory in connection.execute(query):
            if who:
                found.moving[who] = (int(vcpus), int(memory))
            else:
                found.settled = (int(count), int(vcpus), int(memory))
    return found
