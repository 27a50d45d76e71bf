"""Hosts that members of server groups are about to take: the part of the late check that conductors share.

Who wants a host for a member writes a claim, in one transaction under a lock of the group. So claims have an order that all
see alike: of two that race, the later one sees the earlier one, and gives way. A claim goes when the server's record says
where it is, or when the attempt is abandoned. What a conductor wrote that was stopped just then goes when it is too old to be
of use: records name the host long before.
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
    """Claims a host for a member, instead of what it claimed before; returns the claims that came before this one.

    The answer is server -> host; None if the group is gone.
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
    """A server that claims nothing is fine."""
    connection.execute(TABLE.delete().where(TABLE.c.instance_uuid == instance_uuid))


def release(database: Database, instance_uuid: str) -> None:
    with database.write() as connection:
        release_in(connection, instance_uuid)
