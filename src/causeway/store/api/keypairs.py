"""Key pairs of users."""

from __future__ import annotations

from collections.abc import Callable

import sqlalchemy as sa

from causeway import errors
from causeway.model.instance import KeyPair
from causeway.store.api import accepted
from causeway.store.api_tables import KeyPairs
from causeway.store.columns import RowMapper
from causeway.store.database import Database, utcnow

TABLE: sa.Table = KeyPairs.__table__  # type: ignore[assignment]
MAPPER = RowMapper(KeyPair, TABLE)
_COUNT = sa.select(sa.func.count()).where(TABLE.c.user_id == sa.bindparam("of_user"))


def create(
    database: Database, keypair: KeyPair, check: Callable[[int], None] | None = None, *, one_by_one: bool = True
) -> KeyPair:
    """Raises Conflict if the user has a key pair of this name.

    ``check``: called with the number of key pairs that the user has; none is made if it raises an error. ``one_by_one``: others
    who make one for the user wait, so that they are counted.
    """
    keypair.created_at = utcnow()
    try:
        with database.write() as connection:
            if check is not None:
                if one_by_one:
                    accepted.hold_in(connection, accepted.of_user(keypair.user_id))
                check(connection.execute(_COUNT, {"of_user": keypair.user_id}).scalar_one())
            connection.execute(TABLE.insert(), MAPPER.to_row(keypair))
    except sa.exc.IntegrityError as failure:
        raise errors.Conflict(f"Key pair '{keypair.name}' already exists.") from failure
    return get(database, keypair.user_id, keypair.name)


def get(database: Database, user_id: str, name: str) -> KeyPair:
    """Raises KeyPairNotFound."""
    query = sa.select(*MAPPER.columns).where(TABLE.c.user_id == user_id, TABLE.c.name == name)
    with database.read() as connection:
        row = connection.execute(query).one_or_none()
    if row is None:
        raise errors.KeyPairNotFound(f"Keypair {name} not found for user {user_id}")
    return MAPPER.from_row(row)


def list_for(database: Database, user_id: str) -> list[KeyPair]:
    """A user's key pairs by name."""
    query = sa.select(*MAPPER.columns).where(TABLE.c.user_id == user_id).order_by(TABLE.c.name)
    with database.read() as connection:
        return [MAPPER.from_row(row) for row in connection.execute(query)]


def delete(database: Database, user_id: str, name: str) -> None:
    """Raises KeyPairNotFound. Servers keep their copy."""
    with database.write() as connection:
        removed = connection.execute(TABLE.delete().where(TABLE.c.user_id == user_id, TABLE.c.name == name)).rowcount
    if not removed:
        raise errors.KeyPairNotFound(f"Keypair {name} not found for user {user_id}")
