"""Host aggregates."""

from __future__ import annotations

import uuid as uuids
from typing import Any

import sqlalchemy as sa

from causeway import errors
from causeway.model.host import Aggregate
from causeway.store.api_tables import AggregateHosts, Aggregates
from causeway.store.columns import RowMapper
from causeway.store.database import Database, utcnow

TABLE: sa.Table = Aggregates.__table__  # type: ignore[assignment]
HOSTS: sa.Table = AggregateHosts.__table__  # type: ignore[assignment]
MAPPER = RowMapper(Aggregate, TABLE)


def _missing(aggregate_id: int | str) -> errors.AggregateNotFound:
    return errors.AggregateNotFound(f"Aggregate {aggregate_id} could not be found.")


def create(database: Database, name: str, metadata: dict[str, str]) -> Aggregate:
    """Raises Conflict if the name is taken."""
    aggregate = Aggregate(uuid=str(uuids.uuid4()), name=name, metadata=metadata, created_at=utcnow())
    try:
        with database.write() as connection:
            connection.execute(TABLE.insert(), MAPPER.to_row(aggregate))
    except sa.exc.IntegrityError as failure:
        raise errors.Conflict(f"Aggregate {name} already exists.") from failure
    return next(found for found in list_all(database) if found.uuid == aggregate.uuid)


def list_all(database: Database) -> list[Aggregate]:
    """All aggregates with their hosts, in two queries."""
    with database.read() as connection:
        rows = connection.execute(sa.select(*MAPPER.columns).order_by(TABLE.c.id)).all()
        members: dict[int, list[str]] = {}
        if rows:
            for row in connection.execute(sa.select(HOSTS).order_by(HOSTS.c.host)):
                members.setdefault(row.aggregate_id, []).append(row.host)
    return [MAPPER.from_row(row, hosts=members.get(row.id, [])) for row in rows]


def get(database: Database, aggregate_id: int) -> Aggregate:
    """Raises AggregateNotFound."""
    for aggregate in list_all(database):
        if aggregate.id == aggregate_id:
            return aggregate
    raise _missing(aggregate_id)


def update(database: Database, aggregate_id: int, **changes: Any) -> None:
    """Sets name or metadata; raises AggregateNotFound, or Conflict if the name is taken."""
    values = MAPPER.changes(changes) | {"updated_at": utcnow()}
    try:
        with database.write() as connection:
            if not connection.execute(TABLE.update().where(TABLE.c.id == aggregate_id).values(values)).rowcount:
                raise _missing(aggregate_id)
    except sa.exc.IntegrityError as failure:
        raise errors.Conflict(f"Aggregate {changes.get('name')} already exists.") from failure


def delete(database: Database, aggregate_id: int) -> None:
    with database.write() as connection:
        if not connection.execute(TABLE.delete().where(TABLE.c.id == aggregate_id)).rowcount:
            raise _missing(aggregate_id)


def add_host(database: Database, aggregate_id: int, host: str) -> None:
    """Raises Conflict if the host is a member already."""
    try:
        with database.write() as connection:
            connection.execute(HOSTS.insert(), {"aggregate_id": aggregate_id, "host": host})
    except sa.exc.IntegrityError as failure:
        raise errors.Conflict(f"Aggregate {aggregate_id} already has host {host}.") from failure


def remove_host(database: Database, aggregate_id: int, host: str) -> None:
    """Raises NotFound if the host is not a member."""
    with database.write() as connection:
        removed = connection.execute(
            HOSTS.delete().where(HOSTS.c.aggregate_id == aggregate_id, HOSTS.c.host == host)
        ).rowcount
    if not removed:
        raise errors.NotFound(f"Aggregate {aggregate_id} has no host {host}.")
