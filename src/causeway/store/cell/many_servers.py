"""What is known of many servers at once, without the rest of their records."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

import sqlalchemy as sa

from causeway.model.states import VmState
from causeway.store.cell.instances import TABLE
from causeway.store.database import Database, parts

_NO_HIDDEN_COPY = sa.or_(TABLE.c.hidden.is_(None), TABLE.c.hidden.is_(False))


def on_hosts(database: Database, hosts: Collection[str]) -> set[str]:
    """The servers of some hosts, without hidden copies."""
    query = sa.select(TABLE.c.uuid).where(TABLE.c.host.in_(hosts), TABLE.c.deleted.is_(False), _NO_HIDDEN_COPY)
    with database.read() as connection:
        return set(connection.execute(query).scalars())


def without_host(database: Database, states: Collection[VmState]) -> set[str]:
    """The servers in these states that are on no host, without hidden copies."""
    query = sa.select(TABLE.c.uuid).where(
        TABLE.c.host.is_(None),
        TABLE.c.vm_state.in_([state.value for state in states]),
        TABLE.c.deleted.is_(False),
        _NO_HIDDEN_COPY,
    )
    with database.read() as connection:
        return set(connection.execute(query).scalars())


def living(database: Database) -> set[str]:
    """Every server with a record that is not deleted, including hidden copies."""
    with database.read() as connection:
        return set(connection.execute(sa.select(TABLE.c.uuid).where(TABLE.c.deleted.is_(False))).scalars())


def hosts_of(database: Database, uuids: Collection[str]) -> dict[str, str | None]:
    """server -> its host, of those that have a record here."""
    found: dict[str, str | None] = {}
    with database.read() as connection:
        for part in parts(list(uuids)):
            query = sa.select(TABLE.c.uuid, TABLE.c.host).where(TABLE.c.uuid.in_(part))
            found |= dict(connection.execute(query).tuples().all())
    return found


def changed_at(database: Database, uuids: Collection[str]) -> dict[str, datetime]:
    """server -> when it was last changed, or deleted. Those that have not changed since they were made are left out."""
    found: dict[str, datetime] = {}
    with database.read() as connection:
        for part in parts(list(uuids)):
            changed = TABLE.c.updated_at.is_not(None)
            query = sa.select(TABLE.c.uuid, TABLE.c.updated_at).where(TABLE.c.uuid.in_(part), changed)
            found |= dict(connection.execute(query).tuples().all())
    return found


def metadata_of(database: Database, uuids: Collection[str]) -> dict[str, dict[str, str]]:
    """server -> its metadata, for existing servers, without hidden copies."""
    found: dict[str, dict[str, str]] = {}
    for part in parts(sorted(uuids)):
        query = sa.select(TABLE.c.uuid, TABLE.c.metadata).where(
            TABLE.c.uuid.in_(part), TABLE.c.deleted.is_(False), _NO_HIDDEN_COPY
        )
        with database.read() as connection:
            found |= {row.uuid: row.metadata for row in connection.execute(query)}
    return found


__all__ = ["changed_at", "hosts_of", "living", "metadata_of", "on_hosts", "without_host"]
