"""Writes what Nova's API database says of a server: its cell, its request, its group."""

from __future__ import annotations

import sqlalchemy as sa

from causeway.adopt.hand_back.nova_objects import NovaObjects
from causeway.adopt.nova import NovaDatabase, tables
from causeway.adopt.records import ImportedServer
from causeway.store.database import utcnow


def write(api: NovaDatabase, server: ImportedServer, cell_number: int, objects: NovaObjects, group: str | None) -> None:
    """``cell_number``: Nova's number of its cell. ``group``: the uuid of its server group."""
    uuid = server.instance.uuid
    with api.write() as connection:
        _save(
            api,
            connection,
            tables.INSTANCE_MAPPINGS,
            uuid,
            {
                "cell_id": cell_number,
                "project_id": server.instance.project_id,
                "user_id": server.instance.user_id,
                "queued_for_delete": False,
            },
        )
        specs = tables.REQUEST_SPECS
        before = connection.scalar(sa.select(specs.c.spec).where(specs.c.instance_uuid == uuid))
        spec = objects.request_spec(before, server.spec, server.instance.image_meta)
        _save(api, connection, specs, uuid, {"spec": spec})
        if group is not None:
            _join(connection, uuid, group)


def mark_deleted(api: NovaDatabase, uuid: str) -> None:
    table = tables.INSTANCE_MAPPINGS
    with api.write() as connection:
        connection.execute(sa.update(table).where(table.c.instance_uuid == uuid).values(queued_for_delete=True))


def _save(
    api: NovaDatabase, connection: sa.Connection, table: sa.TableClause, uuid: str, values: dict[str, object]
) -> None:
    known = api.known(table, values)
    if not connection.execute(sa.update(table).where(table.c.instance_uuid == uuid).values(known)).rowcount:
        made = api.known(table, {"instance_uuid": uuid, "created_at": utcnow(), **values})
        connection.execute(sa.insert(table).values(made))


def _join(connection: sa.Connection, uuid: str, group: str) -> None:
    groups, members = tables.INSTANCE_GROUPS, tables.INSTANCE_GROUP_MEMBER
    number = connection.scalar(sa.select(groups.c.id).where(groups.c.uuid == group))
    if number is None:
        return
    same = sa.and_(members.c.group_id == number, members.c.instance_uuid == uuid)
    if connection.scalar(sa.select(sa.func.count()).select_from(members).where(same)) == 0:
        connection.execute(sa.insert(members).values(group_id=number, instance_uuid=uuid))


__all__ = ["mark_deleted", "write"]
