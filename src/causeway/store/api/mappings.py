"""Instance mappings: the authority on where a server lives; request specs beside them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

import msgspec
import sqlalchemy as sa

from causeway import errors
from causeway.store.api_tables import InstanceGroupMembers, InstanceGroups, InstanceMappings, RequestSpecs
from causeway.store.columns import JsonWith, RowMapper
from causeway.store.database import Database, parts

TABLE: sa.Table = InstanceMappings.__table__  # type: ignore[assignment]
SPECS: sa.Table = RequestSpecs.__table__  # type: ignore[assignment]


@dataclass
class InstanceMapping:
    """Where a server lives. ``cell_uuid`` None: it has not been scheduled yet."""

    instance_uuid: str
    project_id: str
    user_id: str
    created_at: datetime
    cell_uuid: str | None = None
    queued_for_delete: bool = False
    # See `InstanceMappings`.
    deleted: bool | None = False


MAPPER = RowMapper(InstanceMapping, TABLE)
_GET = sa.select(*MAPPER.columns).where(TABLE.c.instance_uuid == sa.bindparam("of_uuid"))
_HOME = sa.select(TABLE.c.cell_uuid).where(TABLE.c.instance_uuid == sa.bindparam("of_uuid"))
_HOME_AND_GROUP = _HOME.add_columns(
    sa.select(InstanceGroups.uuid)
    .join(InstanceGroupMembers, InstanceGroupMembers.group_id == InstanceGroups.id)
    .where(InstanceGroupMembers.instance_uuid == TABLE.c.instance_uuid)
    .order_by(InstanceGroups.id)
    .limit(1)
    .correlate(TABLE)
    .scalar_subquery()
)
_GET_SPEC = sa.select(SPECS.c.spec).where(SPECS.c.instance_uuid == sa.bindparam("of_uuid"))
_GET_AND_HOLD_SPEC = _GET_SPEC.with_for_update()


def insert_in(connection: sa.Connection, mapping: InstanceMapping) -> None:
    connection.execute(TABLE.insert(), MAPPER.to_row(mapping))


def get(database: Database, uuid: str) -> InstanceMapping:
    """Raises ServerNotFound."""
    with database.read() as connection:
        row = connection.execute(_GET, {"of_uuid": uuid}).one_or_none()
    if row is None:
        raise errors.ServerNotFound(uuid)
    return MAPPER.from_row(row)


def home_of(database: Database, uuid: str, *, with_group: bool = False) -> tuple[str | None, str | None]:
    """The cell of a server and, with ``with_group``, its server group. Raises ServerNotFound."""
    with database.read() as connection:
        row = connection.execute(_HOME_AND_GROUP if with_group else _HOME, {"of_uuid": uuid}).one_or_none()
    if row is None:
        raise errors.ServerNotFound(uuid)
    return row[0], row[1] if with_group else None


def cells_of(database: Database, uuids: list[str]) -> dict[str, str | None]:
    """server -> uuid of the cell that it lives in, for those that are mapped."""
    if not uuids:
        return {}
    found: dict[str, str | None] = {}
    with database.read() as connection:
        for part in parts(uuids):
            query = sa.select(TABLE.c.instance_uuid, TABLE.c.cell_uuid).where(TABLE.c.instance_uuid.in_(part))
            found |= {row.instance_uuid: row.cell_uuid for row in connection.execute(query)}
    return found


def of_cell(database: Database, cell_uuid: str) -> set[str]:
    """Every server that is mapped to a cell, including deleted ones."""
    with database.read() as connection:
        return set(connection.execute(sa.select(TABLE.c.instance_uuid).where(TABLE.c.cell_uuid == cell_uuid)).scalars())


def living_in(database: Database, cell_uuid: str) -> set[str]:
    """The servers that are mapped to a cell and are not being deleted."""
    return {mapping.instance_uuid for mapping in of_project(database, None, cell_uuid=cell_uuid)}


def living_among(database: Database, uuids: Collection[str]) -> set[str]:
    """Those of ``uuids`` that are servers, in any cell, and are not being deleted."""
    found: set[str] = set()
    with database.read() as connection:
        for part in parts(sorted(uuids)):
            query = sa.select(TABLE.c.instance_uuid).where(
                TABLE.c.instance_uuid.in_(part), TABLE.c.queued_for_delete.is_(False)
            )
            found |= set(connection.execute(query).scalars())
    return found


def of_project(database: Database, project_id: str | None, *, cell_uuid: str | None = None) -> list[InstanceMapping]:
    """Mappings that are not queued for delete, of a project (None: of all), in a cell (None: in any)."""
    query = sa.select(*MAPPER.columns).where(TABLE.c.queued_for_delete.is_(False))
    if project_id is not None:
        query = query.where(TABLE.c.project_id == project_id)
    if cell_uuid is not None:
        query = query.where(TABLE.c.cell_uuid == cell_uuid)
    with database.read() as connection:
        return [MAPPER.from_row(row) for row in connection.execute(query)]


def count_living(database: Database, project_id: str, user_id: str | None = None) -> int:
    """The number of servers of a project, or of a user in it, that are not being deleted."""
    query = sa.select(sa.func.count()).where(TABLE.c.queued_for_delete.is_(False), TABLE.c.project_id == project_id)
    if user_id is not None:
        query = query.where(TABLE.c.user_id == user_id)
    with database.read() as connection:
        return int(connection.execute(query).scalar_one())


def set_cell_in(connection: sa.Connection, uuid: str, cell_uuid: str, *, expected: str | None) -> None:
    """Moves a server's mapping, by a compare-and-swap that also succeeds if it was moved there already."""
    changed = connection.execute(
        TABLE.update()
        .where(TABLE.c.instance_uuid == uuid)
        .where(
            sa.or_(TABLE.c.cell_uuid == cell_uuid, TABLE.c.cell_uuid.is_(None))
            if expected is None
            else TABLE.c.cell_uuid.in_([cell_uuid, expected])
        )
        # The row in the other cell may not be deleted.
        .values(cell_uuid=cell_uuid, deleted=False)
    ).rowcount
    if not changed:
        raise errors.StateChanged(
            f"Server {uuid} is not in the cell where it was expected; its mapping was not changed."
        )


def map_in(connection: sa.Connection, mapping: InstanceMapping, *, expected: str | None) -> None:
    """Writes a lost mapping, or one that names the ``expected`` cell. Raises StateChanged if it names another cell by now."""
    try:
        set_cell_in(connection, mapping.instance_uuid, mapping.cell_uuid or "", expected=expected)
    except errors.StateChanged:
        known = sa.select(TABLE.c.instance_uuid).where(TABLE.c.instance_uuid == mapping.instance_uuid)
        if connection.execute(known).one_or_none() is not None:
            raise
        insert_in(connection, mapping)


def queue_for_delete(database: Database, uuid: str, *, queued: bool = True) -> None:
    with database.write() as connection:
        connection.execute(TABLE.update().where(TABLE.c.instance_uuid == uuid).values(queued_for_delete=queued))


def insert_spec_in(connection: sa.Connection, uuid: str, spec: dict[str, Any]) -> None:
    """Writes the request spec of a new server."""
    connection.execute(SPECS.insert(), {"instance_uuid": uuid, "spec": spec})


def save_spec_in(connection: sa.Connection, uuid: str, spec: dict[str, Any]) -> None:
    """Stores the request spec of a server (`RequestSpec.to_persist`)."""
    if not connection.execute(SPECS.update().where(SPECS.c.instance_uuid == uuid).values(spec=spec)).rowcount:
        insert_spec_in(connection, uuid, spec)


def change_spec_in(connection: sa.Connection, uuid: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Replaces a server's request spec by what ``change`` makes of it. Other writers wait. Raises ServerNotFound."""
    stored = connection.execute(_GET_AND_HOLD_SPEC, {"of_uuid": uuid}).scalar_one_or_none()
    if stored is None:
        raise errors.ServerNotFound(uuid)
    connection.execute(SPECS.update().where(SPECS.c.instance_uuid == uuid).values(spec=change(dict(stored))))


def set_in_spec_in(connection: sa.Connection, uuid: str, **fields: Any) -> None:
    """Sets fields of a server's request spec, and only these. Raises ServerNotFound if there is none."""
    if connection.dialect.name == "postgresql":
        change_spec_in(connection, uuid, lambda stored: stored | msgspec.to_builtins(fields))
        return
    values = {name: msgspec.json.encode(value).decode() for name, value in fields.items()}
    if not connection.execute(_set_in_spec(tuple(fields)), values | {"of_uuid": uuid}).rowcount:
        raise errors.ServerNotFound(uuid)


@cache
def _set_in_spec(names: tuple[str, ...]) -> sa.Update:
    of_server = SPECS.c.instance_uuid == sa.bindparam("of_uuid")
    return SPECS.update().where(of_server).values(spec=JsonWith(SPECS.c.spec, names))


def save_spec_if_missing_in(connection: sa.Connection, uuid: str, spec: dict[str, Any]) -> None:
    if connection.execute(_GET_SPEC, {"of_uuid": uuid}).one_or_none() is None:
        save_spec_in(connection, uuid, spec)


def get_spec(database: Database, uuid: str) -> dict[str, Any]:
    """Raises ServerNotFound if there is none."""
    with database.read() as connection:
        spec = connection.execute(_GET_SPEC, {"of_uuid": uuid}).scalar_one_or_none()
    if spec is None:
        raise errors.ServerNotFound(uuid)
    return dict(spec)


def get_specs(database: Database, uuids: Sequence[str]) -> dict[str, dict[str, Any]]:
    """server -> its request spec, for those that have one."""
    found: dict[str, dict[str, Any]] = {}
    with database.read() as connection:
        for part in parts(uuids):
            query = sa.select(SPECS.c.instance_uuid, SPECS.c.spec).where(SPECS.c.instance_uuid.in_(part))
            found |= {row.instance_uuid: dict(row.spec) for row in connection.execute(query)}
    return found
