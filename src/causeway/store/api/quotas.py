"""Limits, and what is needed to count usage, which is never stored: where a project's servers are."""

from __future__ import annotations

from dataclasses import dataclass, field

import sqlalchemy as sa

from causeway.store.api import accepted
from causeway.store.api.accepted import Total
from causeway.store.api_tables import BuildRequests, CellMappings, InstanceMappings, Quotas
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


@dataclass(frozen=True)
class Pending:
    """A server without a cell. ``ram`` in MiB."""

    uuid: str
    user_id: str
    cores: int
    ram: int


@dataclass(frozen=True)
class Places:
    """Where the servers of a project are, all at one moment. ``cells``: those that have any, maybe only deleted ones."""

    pending: list[Pending] = field(default_factory=list)
    cells: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Effective:
    """``whole``: limits of the default class, overridden by those of the project; ``own``: those of the user in it.

    ``accepted``: what was accepted of the project before these were read. ``places``: see `effective`.
    """

    whole: dict[str, int] = field(default_factory=dict)
    own: dict[str, int] = field(default_factory=dict)
    accepted: Total = field(default_factory=Total)
    places: Places | None = None


_TOTAL = accepted.TABLE
_LIMIT = (TABLE.c.project_id, TABLE.c.user_id, TABLE.c.resource, TABLE.c.hard_limit)
_OF_LIMITS = (
    sa.select(
        *(sa.type_coerce(sa.null(), column.type).label(column.name) for column in _LIMIT),
        _TOTAL.c.version,
        _TOTAL.c.amounts,
    ).where(_TOTAL.c.owner == sa.bindparam("of_owner")),
    sa.select(*_LIMIT, sa.null(), sa.null()).where(
        TABLE.c.project_id.in_([sa.bindparam("of_project"), DEFAULT_CLASS]),
        TABLE.c.user_id.in_(["", sa.bindparam("of_user")]),
    ),
)
_EFFECTIVE = sa.union_all(*_OF_LIMITS)
# Rows of these two kinds have no owner of a limit: the second column is null.
_WITH_PLACES = sa.union_all(
    *_OF_LIMITS,
    sa.select(BuildRequests.instance_uuid, sa.null(), sa.null(), sa.null(), sa.null(), BuildRequests.instance).where(
        BuildRequests.project_id == sa.bindparam("of_project")
    ),
    sa.select(CellMappings.uuid, sa.null(), sa.null(), sa.null(), sa.null(), sa.null()).where(
        sa.exists().where(
            InstanceMappings.project_id == sa.bindparam("of_project"), InstanceMappings.cell_uuid == CellMappings.uuid
        )
    ),
)


def effective(database: Database, project_id: str, user_id: str = "", *, places: bool = False) -> Effective:
    """The limits of a project and of a user in it; with ``places``, also where the project's servers are. One query."""
    parameters = {"of_owner": accepted.of_project(project_id), "of_project": project_id, "of_user": user_id}
    with database.read() as connection:
        rows = connection.execute(_WITH_PLACES if places else _EFFECTIVE, parameters).all()
    found: dict[tuple[str, str], dict[str, int]] = {}
    pending, cells = list[Pending](), set[str]()
    total = Total()
    for row in rows:
        if row.version is None and row.user_id is None:
            if row.amounts is None:
                cells.add(row.project_id)
            else:
                flavor = row.amounts["flavor"]
                pending.append(Pending(row.project_id, row.amounts["user_id"], flavor["vcpus"], flavor["memory_mb"]))
        elif row.version is None:
            found.setdefault((row.project_id, row.user_id), {})[row.resource] = row.hard_limit
        else:
            total = Total(row.version, row.amounts)
    return Effective(
        found.get((DEFAULT_CLASS, ""), {}) | found.get((project_id, ""), {}),
        found.get((project_id, user_id), {}) if user_id else {},
        total,
        Places(pending, frozenset(cells)) if places else None,
    )


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
