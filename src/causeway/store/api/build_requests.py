"""Servers that have no cell yet."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import msgspec
import sqlalchemy as sa

from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.network import RequestedNetwork
from causeway.store.api_tables import BuildRequests
from causeway.store.columns import RowMapper
from causeway.store.database import Database, utcnow

TABLE: sa.Table = BuildRequests.__table__  # type: ignore[assignment]


@dataclass
class BuildRequest:
    """Everything that was asked for at create, until the server is in a cell."""

    instance_uuid: str
    project_id: str
    created_at: datetime
    instance: Instance
    block_devices: list[BlockDevice] = field(default_factory=list)
    # None: no network at all was asked for ("none")
    requested_networks: list[RequestedNetwork] = field(default_factory=list)
    # Who asked, and with which token: for `causeway.parts.requesters`.
    requester: dict[str, Any] | None = field(default=None, repr=False)
    sealed_token: str | None = field(default=None, repr=False)


MAPPER = RowMapper(BuildRequest, TABLE)


def _from_row(row: sa.Row[Any]) -> BuildRequest:
    return msgspec.convert(dict(row._mapping), BuildRequest)


def insert_in(connection: sa.Connection, request: BuildRequest) -> None:
    connection.execute(TABLE.insert(), MAPPER.to_row(request))


def find(database: Database, uuid: str) -> BuildRequest | None:
    with database.read() as connection:
        row = connection.execute(sa.select(TABLE).where(TABLE.c.instance_uuid == uuid)).one_or_none()
    return None if row is None else _from_row(row)


def find_all(database: Database, uuids: list[str]) -> dict[str, BuildRequest]:
    """Those of the servers that are there, by the server's uuid."""
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


def save_instance(database: Database, instance: Instance) -> bool:
    """Changes the server of a build request; False if it is there no more."""
    with database.write() as connection:
        values = {"instance": MAPPER.to_value("instance", instance)}
        changed = connection.execute(TABLE.update().where(TABLE.c.instance_uuid == instance.uuid).values(values))
        return bool(changed.rowcount)


def take_over(database: Database, request: BuildRequest) -> bool:
    """Takes a build request from whoever has it: that one can't end it any more. False if another was quicker.

    Its time of creation is also what tells who has it: it changes with the owner.
    """
    with database.write() as connection:
        changed = connection.execute(
            TABLE.update()
            .where(TABLE.c.instance_uuid == request.instance_uuid, TABLE.c.created_at == request.created_at)
            .values(created_at=utcnow())
        )
        return bool(changed.rowcount)


def delete_in(connection: sa.Connection, uuid: str, *, created_at: datetime | None = None) -> bool:
    """Removes a build request; False if somebody else did (the user deleted the server meanwhile).

    ``created_at``: only if it is still that of the caller, see `take_over`.
    """
    statement = TABLE.delete().where(TABLE.c.instance_uuid == uuid)
    if created_at is not None:
        statement = statement.where(TABLE.c.created_at == created_at)
    return bool(connection.execute(statement).rowcount)


def delete(database: Database, uuid: str) -> bool:
    with database.write() as connection:
        return delete_in(connection, uuid)
