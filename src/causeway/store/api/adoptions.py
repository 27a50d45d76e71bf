"""What was imported from Nova, and what it was like then: so an import that is repeated writes only what has changed since."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from causeway.store.api_tables import Adoptions
from causeway.store.columns import RowMapper
from causeway.store.database import Database, parts, utcnow
from causeway.store.upsert import upsert_of

TABLE: sa.Table = Adoptions.__table__  # type: ignore[assignment]


@dataclass
class Adoption:
    """``kind`` and ``key`` name a thing, as "server" and its uuid. ``digest``: of all that was imported of it.

    ``cell_uuid``: where its records are; None: in the API database.
    """

    kind: str
    key: str
    digest: str
    imported_at: datetime
    nova_id: int | None = None
    cell_uuid: str | None = None


MAPPER = RowMapper(Adoption, TABLE)
# That the whole cloud is Causeway's.
_FINISH, _CLOUD = "finish", "cloud"


def of_keys(database: Database, kind: str, keys: Collection[str]) -> dict[str, Adoption]:
    """Those that were imported, by key."""
    found: dict[str, Adoption] = {}
    with database.read() as connection:
        for part in parts(list(keys)):
            query = sa.select(*MAPPER.columns).where(TABLE.c.kind == kind, TABLE.c.key.in_(part))
            found |= {row.key: MAPPER.from_row(row) for row in connection.execute(query)}
    return found


def batches(database: Database, kind: str, size: int) -> Iterator[list[Adoption]]:
    """All of a kind, by key, ``size`` at a time."""
    last = ""
    while True:
        query = (
            sa.select(*MAPPER.columns).where(TABLE.c.kind == kind, TABLE.c.key > last).order_by(TABLE.c.key).limit(size)
        )
        with database.read() as connection:
            found = [MAPPER.from_row(row) for row in connection.execute(query)]
        if found:
            yield found
        if len(found) < size:
            return
        last = found[-1].key


def save_in(connection: sa.Connection, adoptions: Collection[Adoption]) -> None:
    """Records what was imported, within the caller's transaction."""
    rows: list[dict[str, Any]] = [MAPPER.to_row(each) for each in adoptions]
    if rows:
        connection.execute(upsert_of(connection.dialect.name, TABLE), rows)


def delete_in(connection: sa.Connection, kind: str, keys: Collection[str]) -> None:
    for part in parts(list(keys)):
        connection.execute(TABLE.delete().where(TABLE.c.kind == kind, TABLE.c.key.in_(part)))


def counts(database: Database) -> dict[str, int]:
    """How many of each kind were imported."""
    query = sa.select(TABLE.c.kind, sa.func.count()).where(TABLE.c.kind != _FINISH).group_by(TABLE.c.kind)
    with database.read() as connection:
        return dict(connection.execute(query).tuples().all())


def note_finished(database: Database) -> None:
    """Notes that the cloud is Causeway's: what Nova's records say is old from now on."""
    with database.write() as connection:
        save_in(connection, [Adoption(_FINISH, _CLOUD, "0" * 64, utcnow())])


def note_unfinished(database: Database) -> None:
    with database.write() as connection:
        delete_in(connection, _FINISH, [_CLOUD])


def is_finished(database: Database) -> bool:
    return bool(of_keys(database, _FINISH, [_CLOUD]))
