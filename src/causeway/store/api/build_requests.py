"""Servers that have no cell yet.

Users may change such a server while a conductor builds it. So whoever writes the server into a cell deletes its build request
only as it was read (`delete_as_read_in`), in the transaction that maps the server to the cell; if it was changed meanwhile, the
new content is written first. An API that is too late for the build request finds the server in its cell.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import msgspec
import sqlalchemy as sa

from causeway import errors
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.network import RequestedNetwork
from causeway.store.api_tables import BuildRequests, InstanceMappings, RequestSpecs
from causeway.store.columns import RowMapper
from causeway.store.database import Database

TABLE: sa.Table = BuildRequests.__table__  # type: ignore[assignment]


@dataclass
class BuildRequest:
    """A create request, until the server is in a cell."""

    instance_uuid: str
    project_id: str
    created_at: datetime
    instance: Instance
    block_devices: list[BlockDevice] = field(default_factory=list)
    # None: the request wants no network ("none")
    requested_networks: list[RequestedNetwork] = field(default_factory=list)


MAPPER = RowMapper(BuildRequest, TABLE)


@dataclass
class Asked:
    """A requested server. ``request``: None if the server is in a cell (``cell_uuid``) by now.

    ``content``: what a user may change of the request, as it was read.
    """

    cell_uuid: str | None
    spec: dict[str, Any]
    request: BuildRequest | None
    content: bytes = b""


_ASKED = (
    sa.select(
        InstanceMappings.cell_uuid.label("in_cell"),
        RequestSpecs.spec.label("asked_spec"),
        *(column.label(f"asked_{name}") for name, column in zip(MAPPER.fields, MAPPER.columns, strict=True)),
    )
    .select_from(InstanceMappings)
    .outerjoin(RequestSpecs, RequestSpecs.instance_uuid == InstanceMappings.instance_uuid)
    .outerjoin(TABLE, TABLE.c.instance_uuid == InstanceMappings.instance_uuid)
    .where(InstanceMappings.instance_uuid == sa.bindparam("of_uuid"))
)


def asked(database: Database, uuid: str) -> Asked | None:
    """Reads a requested server in one statement; None if it was deleted before it had a cell."""
    with database.read() as connection:
        row = connection.execute(_ASKED, {"of_uuid": uuid}).one_or_none()
    if row is None:
        return None
    request = None
    if row.asked_instance_uuid is not None:
        values = {name: row._mapping[f"asked_{name}"] for name in MAPPER.fields}
        request = msgspec.convert(values, BuildRequest)
    return Asked(row.in_cell, dict(row.asked_spec or {}), request, _content(row.asked_instance))


def _content(instance: Any) -> bytes:
    # Not the object: whoever builds the server writes into parts of it.
    return msgspec.json.encode(instance, order="sorted")


def _from_row(row: sa.Row[Any]) -> BuildRequest:
    return msgspec.convert(dict(row._mapping), BuildRequest)


def insert_in(connection: sa.Connection, request: BuildRequest) -> None:
    connection.execute(TABLE.insert(), MAPPER.to_row(request))


def find(database: Database, uuid: str) -> BuildRequest | None:
    with database.read() as connection:
        row = connection.execute(sa.select(TABLE).where(TABLE.c.instance_uuid == uuid)).one_or_none()
    return None if row is None else _from_row(row)


def find_all(database: Database, uuids: list[str]) -> dict[str, BuildRequest]:
    """The existing ones, by the server's uuid."""
    if not uuids:
        return {}
    with database.read() as connection:
        rows = connection.execute(sa.select(TABLE).where(TABLE.c.instance_uuid.in_(uuids)))
        return {row.instance_uuid: _from_row(row) for row in rows}


def list_for(database: Database, project_id: str | None) -> list[BuildRequest]:
    """Build requests of a project (None: of all), newest first."""
    query = sa.select(TABLE).order_by(TABLE.c.created_at.desc())
    if project_id is not None:
        query = query.where(TABLE.c.project_id == project_id)
    with database.read() as connection:
        return [_from_row(row) for row in connection.execute(query)]


def change_server(database: Database, uuid: str, changes: dict[str, Any]) -> bool:
    """Sets fields of the server of a build request, and only these. Returns False if there is none."""
    query = sa.select(TABLE.c.instance).where(TABLE.c.instance_uuid == uuid).with_for_update()
    with database.write() as connection:
        stored = connection.execute(query).scalar_one_or_none()
        if stored is None:
            return False
        changed = dataclasses.replace(msgspec.convert(stored, Instance), **changes)
        values = {"instance": MAPPER.to_value("instance", changed)}
        connection.execute(TABLE.update().where(TABLE.c.instance_uuid == uuid).values(values))
        return True


def delete_in(connection: sa.Connection, uuid: str) -> bool:
    """Deletes a build request. Returns False if there is none (the user deleted the server meanwhile)."""
    return bool(connection.execute(TABLE.delete().where(TABLE.c.instance_uuid == uuid)).rowcount)


def delete_as_read_in(connection: sa.Connection, uuid: str, asked: Asked) -> bool:
    """Deletes a build request whose server is in a cell as ``asked`` has it. Returns False if there is none.

    Raises RequestChanged if the server was changed since: the caller's transaction is rolled back, and the request stays.
    """
    statement = TABLE.delete().where(TABLE.c.instance_uuid == uuid).returning(TABLE.c.instance)
    stored = connection.execute(statement).scalar_one_or_none()
    if stored is not None and _content(stored) != asked.content:
        raise errors.RequestChanged(f"Server {uuid} was changed while it was built.")
    return stored is not None


def delete(database: Database, uuid: str) -> bool:
    with database.write() as connection:
        return delete_in(connection, uuid)
