"""Drains and their servers.

One conductor works on a drain at a time. It acquires the drain's lease, by the database's clock, and raises its epoch, so that
writes of a former owner are refused. Administrators' requests are written without the lease, as transitions of the drain's state.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import sqlalchemy as sa

from causeway import errors
from causeway.model.drains import (
    ARRIVED,
    AT_REST,
    IN_WORK,
    ON_HOLD,
    OVER,
    TRANSITIONS,
    Drain,
    DrainProgress,
    DrainServer,
    DrainServerState,
    DrainState,
)
from causeway.store.api.ordered_operations import IS_OF_OPERATION, PROGRESS
from causeway.store.api_tables import Drains, DrainServers, Operations
from causeway.store.clock import utc_now
from causeway.store.columns import RowMapper
from causeway.store.database import Database, utcnow

DRAINS: sa.Table = Drains.__table__  # type: ignore[assignment]
SERVERS: sa.Table = DrainServers.__table__  # type: ignore[assignment]
OPERATIONS: sa.Table = Operations.__table__  # type: ignore[assignment]
DRAIN = RowMapper(Drain, DRAINS)
SERVER = RowMapper(DrainServer, SERVERS)

# Rows in one statement.
_BATCH = 500
_AT_REST = [state.value for state in AT_REST]
_OVER = [state.value for state in OVER]


def create(database: Database, drain: Drain, servers: Iterable[DrainServer]) -> None:
    """Raises Conflict if another drain that has not ended has one of the servers."""
    rows = [SERVER.to_row(server, without=frozenset()) for server in servers]
    drain.created_at = utcnow()
    with database.write() as connection:
        connection.execute(DRAINS.insert(), DRAIN.to_row(drain, without=frozenset()))
        for first in range(0, len(rows), _BATCH):
            batch = rows[first : first + _BATCH]
            _refuse_second_drain(connection, drain.id, [row["instance_uuid"] for row in batch])
            connection.execute(SERVERS.insert(), batch)


def add_servers(database: Database, drain: Drain, servers: Iterable[DrainServer]) -> None:
    """Adds servers that came to the drain's scope after it was planned. Raises TakenOver."""
    with database.write() as connection:
        check_owner_in(connection, drain)
        for server in servers:
            connection.execute(SERVERS.insert(), SERVER.to_row(server, without=frozenset()))


def get(database: Database, drain_id: str) -> Drain:
    """Raises NotFound."""
    found = find(database, drain_id)
    if found is None:
        raise _not_found(drain_id)
    return found


def find(database: Database, drain_id: str) -> Drain | None:
    with database.read() as connection:
        row = connection.execute(sa.select(*DRAIN.columns).where(DRAINS.c.id == drain_id)).one_or_none()
    return None if row is None else DRAIN.from_row(row)


def _not_found(drain_id: str) -> errors.NotFound:
    return errors.NotFound(f"Drain {drain_id} could not be found.")


def search(
    database: Database,
    *,
    states: Collection[DrainState] | None = None,
    marker: str | None = None,
    limit: int | None = None,
) -> list[Drain]:
    """Drains, newest first. Raises NotFound for an unknown ``marker``."""
    query = sa.select(*DRAIN.columns).order_by(DRAINS.c.created_at.desc(), DRAINS.c.id.desc())
    if states is not None:
        query = query.where(DRAINS.c.state.in_([state.value for state in states]))
    if marker is not None:
        last = get(database, marker)
        place = sa.tuple_(DRAINS.c.created_at, DRAINS.c.id)
        query = query.where(place < sa.tuple_(sa.literal(last.created_at), sa.literal(last.id)))
    if limit is not None:
        query = query.limit(limit)
    with database.read() as connection:
        return [DRAIN.from_row(row) for row in connection.execute(query)]


def servers(
    database: Database,
    drain_id: str,
    *,
    states: Collection[DrainServerState] | None = None,
    marker: str | None = None,
    limit: int | None = None,
) -> list[DrainServer]:
    """Servers of a drain, by their ids."""
    query = sa.select(*SERVER.columns).where(SERVERS.c.drain_id == drain_id).order_by(SERVERS.c.instance_uuid)
    if states is not None:
        query = query.where(SERVERS.c.state.in_([state.value for state in states]))
    if marker is not None:
        query = query.where(SERVERS.c.instance_uuid > marker)
    if limit is not None:
        query = query.limit(limit)
    with database.read() as connection:
        return [SERVER.from_row(row) for row in connection.execute(query)]


def has_server(database: Database, drain_id: str, instance_uuid: str) -> bool:
    query = sa.select(SERVERS.c.instance_uuid).where(
        SERVERS.c.drain_id == drain_id, SERVERS.c.instance_uuid == instance_uuid
    )
    with database.read() as connection:
        return connection.execute(query).first() is not None


def under_work(database: Database) -> list[DrainServer]:
    """The servers of all drains, including ended ones, that have a request which has not ended."""
    states = [state.value for state in IN_WORK]
    query = sa.select(*SERVER.columns).where(SERVERS.c.state.in_(states))
    with database.read() as connection:
        return [SERVER.from_row(row) for row in connection.execute(query)]


def progress(database: Database, drain_id: str) -> DrainProgress:
    """The progress of a drain."""
    # A server that waits though no move of it has failed waits for its owner.
    is_held = sa.and_(
        SERVERS.c.state == DrainServerState.PENDING.value,
        SERVERS.c.not_before > utc_now(),
        sa.or_(SERVERS.c.attempts == 0, SERVERS.c.why.startswith(ON_HOLD)),
    )
    query = (
        sa.select(
            SERVERS.c.state,
            sa.func.count().label("number"),
            sa.func.sum(SERVERS.c.bytes).label("bytes"),
            sa.func.sum(SERVERS.c.seconds).label("seconds"),
            sa.func.sum(sa.case((is_held, 1), else_=0)).label("held"),
            sa.func.max(sa.case((is_held, SERVERS.c.not_before))).label("held_until"),
            sa.func.max(sa.case((is_held, SERVERS.c.seconds))).label("held_seconds"),
            sa.func.sum(sa.case((is_held, SERVERS.c.seconds))).label("seconds_of_held"),
        )
        .where(SERVERS.c.drain_id == drain_id)
        .group_by(SERVERS.c.state)
    )
    found = DrainProgress()
    with database.read() as connection:
        for row in connection.execute(query):
            state = DrainServerState(row.state)
            found.servers[state] = row.number
            found.bytes_total += int(row.bytes)
            found.bytes_done += int(row.bytes) if state in ARRIVED else 0
            if state in (DrainServerState.PENDING, DrainServerState.ASKED):
                found.seconds_left += float((row.seconds or 0.0) - (row.seconds_of_held or 0.0))
            if row.held:
                found.held, found.held_until = int(row.held), row.held_until
                found.held_seconds = float(row.held_seconds or 0.0)
    return found


def delete(database: Database, drain_id: str) -> bool:
    """Deletes a drain, unless a conductor works on it. Returns whether it did."""
    with database.write() as connection:
        query = sa.select(DRAINS.c.state).where(DRAINS.c.id == drain_id).with_for_update()
        if connection.execute(query).scalar_one_or_none() not in _AT_REST:
            return False
        connection.execute(SERVERS.delete().where(SERVERS.c.drain_id == drain_id))
        connection.execute(DRAINS.delete().where(DRAINS.c.id == drain_id))
    return True


def acquire(database: Database, drain_id: str, owner: str, lease: float) -> Drain | None:
    """Gives a drain that has work to ``owner`` for ``lease`` seconds; None if another owner has it, or it has no work."""
    free = sa.or_(DRAINS.c.owner.is_(None), DRAINS.c.owner == owner, DRAINS.c.lease_until < utc_now())
    with database.write() as connection:
        taken = connection.execute(
            DRAINS.update()
            .where(DRAINS.c.id == drain_id, DRAINS.c.state.not_in(_AT_REST), free)
            .values(
                # The present owner keeps its epoch.
                epoch=sa.case((DRAINS.c.owner == owner, DRAINS.c.epoch), else_=DRAINS.c.epoch + 1),
                owner=owner,
                lease_until=utc_now(lease),
            )
        ).rowcount
        if not taken:
            return None
        return DRAIN.from_row(connection.execute(sa.select(*DRAIN.columns).where(DRAINS.c.id == drain_id)).one())


def release(database: Database, owner: str) -> None:
    """Releases all drains of ``owner``. The next conductor that looks acquires them."""
    with database.write() as connection:
        connection.execute(DRAINS.update().where(DRAINS.c.owner == owner).values(owner=None, lease_until=utc_now()))


def change(database: Database, drain: Drain, **changes: Any) -> None:
    """Changes a drain for its owner. Raises TakenOver if the drain has another owner by now."""
    with database.write() as connection:
        check_owner_in(connection, drain)
        connection.execute(DRAINS.update().where(DRAINS.c.id == drain.id).values(DRAIN.changes(changes)))
    for name, value in changes.items():
        setattr(drain, name, value)


def advance(database: Database, drain: Drain, state: DrainState, **changes: Any) -> None:
    """Changes a drain's state for its owner. Releases the lease if the new state needs no work.

    Raises TakenOver if the drain has another owner by now, or another state than its owner knows.
    """
    values = {"state": state, **changes} | ({"owner": None, "lease_until": None} if state in AT_REST else {})
    with database.write() as connection:
        check_owner_in(connection, drain, drain.state)
        connection.execute(DRAINS.update().where(DRAINS.c.id == drain.id).values(DRAIN.changes(values)))
    for name, value in values.items():
        setattr(drain, name, value)


def change_server(database: Database, drain: Drain, server: DrainServer, **changes: Any) -> None:
    """Like `change`, for one of its servers."""
    with database.write() as connection:
        check_owner_in(connection, drain)
        connection.execute(
            SERVERS.update()
            .where(SERVERS.c.drain_id == drain.id, SERVERS.c.instance_uuid == server.instance_uuid)
            .values(SERVER.changes(changes))
        )
    for name, value in changes.items():
        setattr(server, name, value)


def transit(
    database: Database, drain_id: str, state: DrainState, *, before: DrainState | None = None, **changes: Any
) -> Drain:
    """Changes a drain's state by request. ``before``: only from this state.

    Raises NotFound, and Conflict if the transition is not allowed now.
    """
    known = [each for each, following in TRANSITIONS.items() if state in following and before in (None, each)]
    with database.write() as connection:
        changed = connection.execute(
            DRAINS.update()
            .where(DRAINS.c.id == drain_id, DRAINS.c.state.in_([each.value for each in known]))
            .values(state=state.value, **DRAIN.changes(changes))
        ).rowcount
    found = get(database, drain_id)
    if not changed:
        raise errors.Conflict(f"Drain {drain_id} is {found.state}: it can't be {state} now.")
    return found


def revise_limits(database: Database, drain_id: str, limits: Mapping[str, int | None]) -> Drain:
    """Changes the named limits. Raises NotFound, and Conflict if the drain has ended."""
    with database.write() as connection:
        query = sa.select(*DRAIN.columns).where(DRAINS.c.id == drain_id).with_for_update()
        row = connection.execute(query).one_or_none()
        if row is None:
            raise _not_found(drain_id)
        drain = DRAIN.from_row(row)
        if drain.state in AT_REST and drain.state is not DrainState.PLANNED:
            raise errors.Conflict(f"Drain {drain_id} is {drain.state}: its limits can't be changed any more.")
        wanted = dataclasses.replace(drain.request.limits, **limits)
        drain.request = dataclasses.replace(drain.request, limits=wanted)
        connection.execute(
            DRAINS.update().where(DRAINS.c.id == drain_id).values(request=DRAIN.to_value("request", drain.request))
        )
    return drain


def check_owner(database: Database, drain: Drain) -> None:
    """`check_owner_in`, for the present moment only."""
    with database.write() as connection:
        check_owner_in(connection, drain)


def check_owner_in(connection: sa.Connection, drain: Drain, state: DrainState | None = None) -> None:
    """Raises TakenOver if a drain has another owner than the one that read it, or another state than this one.

    Locks the drain until the end of the transaction.
    """
    query = sa.select(DRAINS.c.epoch, DRAINS.c.state).where(DRAINS.c.id == drain.id).with_for_update()
    found = connection.execute(query).one_or_none()
    if found is None or found.epoch != drain.epoch:
        raise errors.TakenOver(f"Drain {drain.id} was taken over by another conductor.")
    if state is not None and found.state != state.value:
        raise errors.TakenOver(f"Drain {drain.id} is {found.state} by now.")


def bytes_sent(database: Database, requests: Mapping[str, str]) -> dict[str, int]:
    """server -> bytes that its moves have sent so far, according to their steps. ``requests``: server -> the request's id."""
    found: Counter[str] = Counter()
    ended, now = (sa.func.coalesce(part, 0) for part in (OPERATIONS.c.sent, PROGRESS.c.bytes_done))
    for batch in _batches(sorted(requests)):
        query = (
            sa.select(OPERATIONS.c.instance_uuid, OPERATIONS.c.request_id, (ended + now).label("sent"))
            .select_from(OPERATIONS.outerjoin(PROGRESS, IS_OF_OPERATION))
            .where(
                OPERATIONS.c.instance_uuid.in_(batch), OPERATIONS.c.request_id.in_([requests[uuid] for uuid in batch])
            )
        )
        with database.read() as connection:
            for row in connection.execute(query):
                if requests[row.instance_uuid] == row.request_id:
                    found[row.instance_uuid] += int(row.sent)
    return dict(found)


def rates_of(database: Database, operation_ids: Collection[str]) -> dict[str, float]:
    """move -> bytes a second that it may send now, its share of its drain's rate. Moves without a limit are missing."""
    of_drain = sa.and_(
        SERVERS.c.instance_uuid == OPERATIONS.c.instance_uuid, SERVERS.c.request_id == OPERATIONS.c.request_id
    )
    is_asked = SERVERS.c.state == DrainServerState.ASKED.value
    limits: dict[str, tuple[str, float]] = {}
    with database.read() as connection:
        for batch in _batches(sorted(operation_ids)):
            query = (
                sa.select(OPERATIONS.c.id.label("move"), DRAINS.c.id, DRAINS.c.request)
                .select_from(OPERATIONS.join(SERVERS, of_drain).join(DRAINS, DRAINS.c.id == SERVERS.c.drain_id))
                .where(OPERATIONS.c.id.in_(batch), is_asked)
            )
            for row in connection.execute(query):
                limit = row.request.get("limits", {}).get("bytes_per_second")
                if limit is not None:
                    limits[row.move] = row.id, float(limit)
        if not limits:
            return {}
        sending = (
            sa.select(SERVERS.c.drain_id, sa.func.count(sa.distinct(OPERATIONS.c.id)).label("moves"))
            .select_from(SERVERS.join(OPERATIONS, of_drain).outerjoin(PROGRESS, IS_OF_OPERATION))
            .where(
                SERVERS.c.drain_id.in_({drain_id for drain_id, _limit in limits.values()}),
                is_asked,
                # The moves that ask are reporting, though their reports may not be written yet.
                sa.or_(PROGRESS.c.move_id.is_not(None), OPERATIONS.c.id.in_(limits)),
            )
            .group_by(SERVERS.c.drain_id)
        )
        counts = {row.drain_id: row.moves for row in connection.execute(sending)}
    return {move: limit / max(1, counts.get(drain_id, 0)) for move, (drain_id, limit) in limits.items()}


def of_others(database: Database, drain_id: str, uuids: Collection[str]) -> set[str]:
    """Those servers that belong to another drain that has not ended."""
    found: set[str] = set()
    with database.read() as connection:
        for batch in _batches(sorted(uuids)):
            query = _of_others(drain_id, batch).with_only_columns(SERVERS.c.instance_uuid)
            found.update(connection.execute(query).scalars())
    return found


def _batches(uuids: list[str]) -> Iterator[list[str]]:
    for first in range(0, len(uuids), _BATCH):
        yield uuids[first : first + _BATCH]


def _of_others(drain_id: str, uuids: list[str]) -> sa.Select[Any]:
    return (
        sa.select(SERVERS.c.instance_uuid, SERVERS.c.drain_id)
        .join(DRAINS, DRAINS.c.id == SERVERS.c.drain_id)
        .where(
            SERVERS.c.instance_uuid.in_(uuids),
            SERVERS.c.drain_id != drain_id,
            SERVERS.c.state.not_in(_OVER),
            DRAINS.c.state.not_in([state for state in _AT_REST if state != DrainState.PLANNED.value]),
        )
    )


def _refuse_second_drain(connection: sa.Connection, drain_id: str, uuids: list[str]) -> None:
    other = connection.execute(_of_others(drain_id, uuids).limit(1)).one_or_none()
    if other is not None:
        raise errors.Conflict(f"Server {other.instance_uuid} belongs to drain {other.drain_id}, which has not ended.")
