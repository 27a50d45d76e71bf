"""Hosts that are taken over from Nova: how far each of them is, and what was found there last."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import sqlalchemy as sa

from causeway.model.adoption import OWNED, AdoptedHost
from causeway.model.sagas import ENDED
from causeway.store.api.journal import OPERATIONS
from causeway.store.api_tables import AdoptedHosts
from causeway.store.columns import RowMapper
from causeway.store.database import Database, parts, utcnow
from causeway.store.upsert import upsert_of

TABLE: sa.Table = AdoptedHosts.__table__  # type: ignore[assignment]
MAPPER = RowMapper(AdoptedHost, TABLE)
_ENDED = [state.value for state in ENDED]


def all_hosts(database: Database) -> list[AdoptedHost]:
    with database.read() as connection:
        return [MAPPER.from_row(row) for row in connection.execute(sa.select(*MAPPER.columns).order_by(TABLE.c.host))]


def find(database: Database, host: str) -> AdoptedHost | None:
    with database.read() as connection:
        row = connection.execute(sa.select(*MAPPER.columns).where(TABLE.c.host == host)).one_or_none()
    return None if row is None else MAPPER.from_row(row)


def owned(database: Database) -> set[str]:
    """The hosts that are, or may be, Causeway's."""
    query = sa.select(TABLE.c.host).where(TABLE.c.state.in_([state.value for state in OWNED]))
    with database.read() as connection:
        return set(connection.execute(query).scalars())


def hold_in(connection: sa.Connection, hosts: Collection[str]) -> set[str]:
    """Returns which of the hosts are, or may be, Causeway's. No state of them changes until the caller's transaction ends."""
    found: set[str] = set()
    for part in parts(sorted(hosts)):
        # In one order, so that two imports never wait for each other.
        query = sa.select(TABLE.c.host, TABLE.c.state).where(TABLE.c.host.in_(part)).order_by(TABLE.c.host)
        found |= {row.host for row in connection.execute(query.with_for_update()) if row.state in OWNED}
    return found


def save(database: Database, adopted: AdoptedHost) -> None:
    """Records how far a host is, now."""
    with database.write() as connection:
        save_in(connection, [adopted])


def save_in(connection: sa.Connection, hosts: Iterable[AdoptedHost]) -> None:
    """`save` for several, within the caller's transaction."""
    for adopted in hosts:
        adopted.updated_at = utcnow()
        connection.execute(upsert_of(connection.dialect.name, TABLE), MAPPER.to_row(adopted))


def note_imported_in(connection: sa.Connection, hosts: Mapping[str, str]) -> None:
    """Notes hosts (with the uuids of their cells) whose records were imported. Those that are known stay as they are."""
    known = set(connection.execute(sa.select(TABLE.c.host)).scalars())
    save_in(connection, [AdoptedHost(host, cell_uuid) for host, cell_uuid in hosts.items() if host not in known])


def operations_on(database: Database, host: str, servers: Collection[str]) -> list[tuple[str, str]]:
    """(id, recipe) of the operations that have not ended and take part in the host, or belong to one of its servers."""
    conditions = [OPERATIONS.c.hosts.contains(f"|{host}|", autoescape=True)]
    conditions += [OPERATIONS.c.instance_uuid.in_(part) for part in parts(sorted(servers))]
    found: dict[str, str] = {}
    with database.read() as connection:
        for condition in conditions:
            query = sa.select(OPERATIONS.c.id, OPERATIONS.c.recipe).where(OPERATIONS.c.state.not_in(_ENDED), condition)
            found |= {row.id: row.recipe for row in connection.execute(query)}
    return sorted(found.items())
