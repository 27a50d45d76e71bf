"""Limits. Usage is counted, never stored."""

from __future__ import annotations

from typing import TypeAlias

import sqlalchemy as sa

from causeway.store.api_tables import Quotas
from causeway.store.database import Database

TABLE: sa.Table = Quotas.__table__  # type: ignore[assignment]
DEFAULT_CLASS = "class:default"


def limits(database: Database, project_id: str, user_id: str = "") -> dict[str, int]:
    """The limits that were set for a project, or for a user in it. The project ``class:NAME`` means a quota class."""
    query = sa.select(TABLE.c.resource, TABLE.c.hard_limit).where(
        TABLE.c.project_id == project_id, TABLE.c.user_id == user_id
    )
    with database.read() as connection:
        return {row.resource: row.hard_limit for row in connection.execute(query)}


# What was set for a project (with the default class), and for a user in it.
Effective: TypeAlias = tuple[dict[str, int], dict[str, int]]


def effective(database: Database, project_id: str, user_id: str = "") -> Effective:
    """Returns (limits of the default class, overridden by those of the project; limits of the user in it). One query."""
    query = sa.select(TABLE).where(
        TABLE.c.project_id.in_([project_id, DEFAULT_CLASS]), TABLE.c.user_id.in_(["", user_id])
    )
    with database.read() as connection:
        rows = connection.execute(query).all()
    found: dict[tuple[str, str], dict[str, int]] = {}
    for row in rows:
        found.setdefault((row.project_id, row.user_id), {})[row.resource] = row.hard_limit
    whole = found.get((DEFAULT_CLASS, ""), {}) | found.get((project_id, ""), {})
    return whole, found.get((project_id, user_id), {}) if user_id else {}


def set_limits(database: Database, project_id: str, new: dict[str, int], user_id: str = "") -> None:
    with database.write() as connection:
        for resource, limit in new.items():
            key = (TABLE.c.project_id == project_id) & (TABLE.c.user_id == user_id) & (TABLE.c.resource == resource)
            if not connection.execute(TABLE.update().where(key).values(hard_limit=limit)).rowcount:
                row = {"project_id": project_id, "user_id": user_id, "resource": resource, "hard_limit": limit}
                connection.execute(TABLE.insert(), row)


def delete_limits(database: Database, project_id: str, user_id: str = "") -> None:
    """Deletes limits, so that the defaults apply."""
    with database.write() as connection:
        connection.execute(TABLE.delete().where(TABLE.c.project_id == project_id, TABLE.c.user_id == user_id))
