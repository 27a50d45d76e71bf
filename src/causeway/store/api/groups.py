"""Server groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import sqlalchemy as sa

from causeway import errors
from causeway.model.host import ServerGroup
from causeway.store.api import accepted, group_claims
from causeway.store.api_tables import InstanceGroupMembers, InstanceGroups
from causeway.store.columns import RowMapper
from causeway.store.database import Database, parts, utcnow

TABLE: sa.Table = InstanceGroups.__table__  # type: ignore[assignment]
MEMBERS: sa.Table = InstanceGroupMembers.__table__  # type: ignore[assignment]
MAPPER = RowMapper(ServerGroup, TABLE)


_OF_SERVER = sa.select(*MAPPER.columns).where(
    TABLE.c.id.in_(sa.select(MEMBERS.c.group_id).where(MEMBERS.c.instance_uuid == sa.bindparam("of_server")))
)
_HOLD = sa.select(TABLE.c.id).where(TABLE.c.id == sa.bindparam("of_group")).with_for_update()


def _load(database: Database, query: sa.Select[Any], parameters: dict[str, Any] | None = None) -> list[ServerGroup]:
    with database.read() as connection:
        rows = connection.execute(query, parameters or {}).all()
        members: dict[int, list[str]] = {}
        if rows:
            wanted = sa.select(MEMBERS).where(MEMBERS.c.group_id.in_([row.id for row in rows]))
            for row in connection.execute(wanted):
                members.setdefault(row.group_id, []).append(row.instance_uuid)
    return [MAPPER.from_row(row, members=members.get(row.id, [])) for row in rows]


def create(
    database: Database, group: ServerGroup, check: Callable[[int], None] | None = None, *, one_by_one: bool = True
) -> ServerGroup:
    """``check``: called with the number of groups that the project has; no group is made if it raises an error.

    ``one_by_one``: others who make one in the project wait, so that they are counted.
    """
    group.created_at = utcnow()
    with database.write() as connection:
        if check is not None:
            if one_by_one:
                accepted.hold_in(connection, accepted.of_project(group.project_id))
            check(_count_in(connection, TABLE.c.project_id == group.project_id))
        connection.execute(TABLE.insert(), MAPPER.to_row(group))
    return get(database, group.uuid)


def _count_in(connection: sa.Connection, condition: sa.ColumnElement[bool]) -> int:
    return int(connection.execute(sa.select(sa.func.count()).where(condition)).scalar_one())


def get(database: Database, uuid: str) -> ServerGroup:
    """Raises ServerGroupNotFound."""
    found = _load(database, sa.select(*MAPPER.columns).where(TABLE.c.uuid == uuid))
    if not found:
        raise errors.ServerGroupNotFound(f"Instance group {uuid} could not be found.")
    return found[0]


def list_for(database: Database, project_id: str | None) -> list[ServerGroup]:
    """Groups of a project (None: of all), in the order in which they were made."""
    query = sa.select(*MAPPER.columns).order_by(TABLE.c.id)
    if project_id is not None:
        query = query.where(TABLE.c.project_id == project_id)
    return _load(database, query)


def of_server(database: Database, instance_uuid: str) -> ServerGroup | None:
    """The group that a server is a member of, if any."""
    found = _load(database, _OF_SERVER, {"of_server": instance_uuid})
    return found[0] if found else None


def of_servers(database: Database, instance_uuids: Sequence[str]) -> list[ServerGroup]:
    """The groups that any of these servers are members of, with all of their members."""
    found: dict[str, ServerGroup] = {}
    for part in parts(instance_uuids):
        ids = sa.select(MEMBERS.c.group_id).where(MEMBERS.c.instance_uuid.in_(part))
        found |= {group.uuid: group for group in _load(database, sa.select(*MAPPER.columns).where(TABLE.c.id.in_(ids)))}
    return list(found.values())


def add_members_in(
    connection: sa.Connection, group: ServerGroup, instance_uuids: Sequence[str], check: Callable[[int], None]
) -> None:
    """``check``: called with the number of present members, while others who add some wait; it may raise an error.

    Raises ServerGroupNotFound if the group was deleted.
    """
    if connection.execute(_HOLD, {"of_group": group.id}).one_or_none() is None:
        raise errors.ServerGroupNotFound(f"Instance group {group.uuid} could not be found.")
    check(_count_in(connection, MEMBERS.c.group_id == group.id))
    connection.execute(MEMBERS.insert(), [{"group_id": group.id, "instance_uuid": uuid} for uuid in instance_uuids])


def remove_member(database: Database, instance_uuid: str) -> None:
    with database.write() as connection:
        if connection.execute(MEMBERS.delete().where(MEMBERS.c.instance_uuid == instance_uuid)).rowcount:
            group_claims.release_in(connection, instance_uuid)


def delete(database: Database, uuid: str) -> None:
    """Raises ServerGroupNotFound. Its servers stay."""
    with database.write() as connection:
        if not connection.execute(TABLE.delete().where(TABLE.c.uuid == uuid)).rowcount:
            raise errors.ServerGroupNotFound(f"Instance group {uuid} could not be found.")
