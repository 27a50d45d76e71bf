"""Tokens that open consoles. Only their hashes are stored. They expire by the database's clock."""

from __future__ import annotations

import uuid as uuids
from hashlib import sha256

import sqlalchemy as sa

from causeway.model.console import ConsolePlace, ConsoleToken, ConsoleType
from causeway.store.api_tables import ConsoleAuthTokens
from causeway.store.clock import utc_now
from causeway.store.columns import RowMapper
from causeway.store.database import Database

TABLE: sa.Table = ConsoleAuthTokens.__table__  # type: ignore[assignment]
MAPPER = RowMapper(ConsoleToken, TABLE)


def hash_of(token: str) -> str:
    return sha256(token.encode()).hexdigest()


def create(database: Database, place: ConsolePlace, kind: ConsoleType, instance_uuid: str, seconds: float) -> str:
    """Makes a token that opens a console for ``seconds``."""
    token = str(uuids.uuid4())
    address = place.address
    row = MAPPER.to_row(
        ConsoleToken(
            token_hash=hash_of(token),
            console_type=kind,
            instance_uuid=instance_uuid,
            cell_uuid=place.cell_uuid,
            compute_host=place.compute_host,
            host=address.host,
            port=address.port,
            access_url_base=address.access_url_base,
        )
    )
    with database.write() as connection:
        connection.execute(TABLE.insert().values(**row, expires_at=utc_now(seconds)))
    return token


def find(database: Database, token: str) -> tuple[ConsoleToken, float] | None:
    """What a token opens, and its remaining seconds; None if it is unknown or has expired."""
    query = sa.select(*MAPPER.columns, TABLE.c.expires_at, utc_now().label("now")).where(
        TABLE.c.token_hash == hash_of(token), TABLE.c.expires_at > utc_now()
    )
    with database.read() as connection:
        row = connection.execute(query).one_or_none()
    return None if row is None else (MAPPER.from_row(row), (row.expires_at - row.now).total_seconds())


def purge(database: Database) -> None:
    """Deletes expired tokens."""
    with database.write() as connection:
        connection.execute(TABLE.delete().where(TABLE.c.expires_at <= utc_now()))
