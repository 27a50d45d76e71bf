"""Claims of members of server groups on hosts: the part of the late check that conductors share.

A conductor writes a claim in one transaction, under a lock of the group. So claims have one order: of two that race, the later
one sees the earlier one, and gives way. A claim is deleted when the server's record names its host, or when the attempt is
abandoned. Claims of a conductor that died are deleted when they are too old to matter: records name the host long before.
"""

from __future__ import annotations

from datetime import timedelta

import sqlalchemy as sa

from causeway.store.api_tables import InstanceGroupClaims, InstanceGroups
from causeway.store.database import Database, utcnow

TABLE: sa.Table = InstanceGroupClaims.__table__  # type: ignore[assignment]
GROUPS: sa.Table = InstanceGroups.__table__  # type: ignore[assignment]

OLDEST = timedelta(hours=2)


def take(database: Database, group_uuid: str, instance_uuid: str, host: str) -> dict[str, str] | None:
    """Claims a host for a member, in place of its earlier claim. Returns the claims before this one.

    These are server -> host; None if the group was deleted.
    """
    with database.write() as connection:
        lock = sa.select(GROUPS.c.id).where(GROUPS.c.uuid == group_uuid).with_for_update()
        group_id = connection.execute(lock).scalar_one_or_none()
        if group_id is None:
            return None
        connection.execute(TABLE.delete().where(TABLE.c.group_id == group_id, TABLE.c.created_at < utcnow() - OLDEST))
        own = TABLE.c.instance_uuid == instance_uuid
        mine = connection.execute(sa.select(TABLE.c.id).where(own, TABLE.c.host == host)).scalar_one_or_none()
        if mine is None:
            connection.execute(TABLE.delete().where(own))
            claim = {"group_id": group_id, "instance_uuid": instance_uuid, "host": host, "created_at": utcnow()}
            mine = connection.execute(TABLE.insert(), claim).inserted_primary_key[0]  # type: ignore[index]
        earlier = sa.select(TABLE.c.instance_uuid, TABLE.c.host).where(TABLE.c.group_id == group_id, TABLE.c.id < mine)
        return {row.instance_uuid: row.host for row in connection.execute(earlier)}


def release_in(connection: sa.Connection, instance_uuid: str) -> None:
    """Releases the claim of a server, if it has one."""
    connection.execute(TABLE.delete().where(TABLE.c.instance_uuid == instance_uuid))


def release(database: Database, instance_uuid: str) -> None:
    with database.write() as connection:
        release_in(connection, instance_uuid)
