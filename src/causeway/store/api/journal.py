"""The journal of operations: who owns them, and how they are found.

`causeway.store.api.recording` writes for their owners; `causeway.store.api.wanted_moves` says whether they are still wanted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Set
from typing import Any

import msgspec
import sqlalchemy as sa

from causeway import errors, metrics
from causeway.model.operation_kinds import recipes_where
from causeway.model.operations import (
    CREATE_VOLUME_IMAGE,
    RESIZE,
    Operation,
    OperationBrief,
    with_former_names,
)
from causeway.model.requesters import Requester
from causeway.model.sagas import ENDED, NOT_ACCEPTED, SagaState, StepRecord
from causeway.store.api_tables import InstanceMappings, Moves
from causeway.store.clock import utc_now
from causeway.store.columns import RowMapper, fitting
from causeway.store.database import Database

MOVES: sa.Table = Moves.__table__  # type: ignore[assignment]
MOVE = RowMapper(Operation, MOVES, without=frozenset({"explanation"}))
BRIEF = RowMapper(OperationBrief, MOVES)

# Servers in one statement.
_BATCH = 500
# Statements that are made once: an operation executes each of them a dozen times.
_ENDED = [state.value for state in ENDED]
_NOT_ACCEPTED = [state.value for state in NOT_ACCEPTED]
_NOT_ENDED = [state.value for state in SagaState if state not in ENDED]
_GET = sa.select(*MOVE.columns).where(MOVES.c.id == sa.bindparam("of_operation"))
# What the owner of an operation does not write: what it is, who has it, and what users ask of it meanwhile. Its steps are
# written by name.
_NEVER_CHANGED = frozenset(
    {"id", "migration_uuid", "instance_uuid", "epoch", "started_at", "cancel_requested", "lease_until", "steps"}
)
# The recipes that bring a server to its target. Confirms and reverts begin with their memory.
RESIZES = with_former_names(RESIZE)
_EARLIER = MOVES.alias("earlier")
_BESIDE_VOLUME_IMAGE = recipes_where(lambda kind: kind.may_begin_beside_volume_image)
_MUST_WAIT = sa.exists().where(
    _EARLIER.c.instance_uuid == MOVES.c.instance_uuid,
    _EARLIER.c.id != MOVES.c.id,
    _EARLIER.c.started_at < MOVES.c.started_at,
    # One that is not accepted is the request of somebody who was slower than this one's, and is about to be refused.
    _EARLIER.c.state.not_in([*_NOT_ACCEPTED, *_ENDED]),
    _EARLIER.c.recipe.not_in(recipes_where(lambda kind: not kind.is_waited_for)),
    sa.or_(_EARLIER.c.recipe != CREATE_VOLUME_IMAGE, MOVES.c.recipe.not_in(_BESIDE_VOLUME_IMAGE)),
)
# Two requests for a server meet at its mapping, which both lock.
_HOLD = (
    sa.select(InstanceMappings.cell_uuid)
    .where(InstanceMappings.instance_uuid == sa.bindparam("of_instance"))
    .with_for_update()
)
_AT_CELL = sa.select(InstanceMappings.cell_uuid).where(InstanceMappings.instance_uuid == MOVES.c.instance_uuid)
_UNDER_WAY = sa.select(*MOVE.columns).where(
    MOVES.c.instance_uuid == sa.bindparam("of_instance"), MOVES.c.state.in_(_NOT_ENDED)
)
_MAPPED_UNDER_WAY = (
    sa.select(InstanceMappings.cell_uuid.label("at_cell"), MOVES.c.id.label("operation"), *MOVE.columns)
    .select_from(
        sa.outerjoin(
            InstanceMappings,
            MOVES,
            sa.and_(MOVES.c.instance_uuid == InstanceMappings.instance_uuid, MOVES.c.state.in_(_NOT_ENDED)),
        )
    )
    .where(InstanceMappings.instance_uuid == sa.bindparam("of_instance"))
)
_LEASE_IS_OVER = MOVES.c.lease_until < utc_now()
_TO_ACQUIRE = sa.select(
    *MOVE.columns,
    _MUST_WAIT.label("must_wait"),
    sa.case((_LEASE_IS_OVER, 1), else_=0).label("is_over"),
    _AT_CELL.scalar_subquery().label("at_cell"),
    MOVES.c.requester,
).where(MOVES.c.id == sa.bindparam("of_operation"))


def acquire(
    database: Database,
    operation_id: str,
    owner: str,
    lease: float,
    *,
    former: Set[str] = frozenset(),
    by_first_write: bool = False,
) -> Operation | None:
    """Acquires an operation for ``lease`` seconds and raises its epoch, which fences off former owners.

    Returns None if it has ended, another owner has its lease, or an earlier operation of the same server has not ended (see
    `waiting`). A stuck operation is free when its pause is over. ``former``: owners that are known to be dead.
    ``by_first_write``: writes nothing for a requested operation: the first `record` that ``takes`` it makes the caller its
    owner.
    """
    with database.read() as connection:
        row = connection.execute(_TO_ACQUIRE, {"of_operation": operation_id}).one_or_none()
    if row is None or row.must_wait or row.state in _NOT_ACCEPTED:
        return None
    operation = MOVE.from_row(row)
    unowned = operation.state is not SagaState.STUCK and operation.owner in (None, owner, *former)
    if operation.state in ENDED or not (unowned or row.is_over):
        return None
    operation.cell_uuid, operation.requested_by = row.at_cell, row.requester
    if by_first_write and operation.state is SagaState.REQUESTED:
        operation.written = values_of(operation)
        operation.owner, operation.epoch = owner, operation.epoch + 1
        return operation
    with database.write() as connection:
        taken = connection.execute(
            MOVES.update()
            .where(MOVES.c.id == operation_id, MOVES.c.epoch == operation.epoch, MOVES.c.state == operation.state.value)
            .values(owner=owner, lease_until=utc_now(lease), epoch=operation.epoch + 1)
        ).rowcount
    if not taken:
        return None
    if not unowned and operation.owner is not None:
        metrics.TAKEOVERS.labels(operation.recipe).inc()
    operation.owner, operation.epoch = owner, operation.epoch + 1
    operation.written = values_of(operation)
    return operation


def waiting(database: Database, instance_uuid: str) -> list[Operation]:
    """The server's operations without an owner, oldest first. They wait for another one's end, or for the retry of a step."""
    return _select(
        database,
        sa.and_(
            MOVES.c.instance_uuid == instance_uuid,
            sa.or_(
                MOVES.c.state == SagaState.REQUESTED.value,
                sa.and_(MOVES.c.state == SagaState.RUNNING.value, MOVES.c.owner.is_(None)),
            ),
        ),
    )


def renew(database: Database, owner: str, operation_ids: list[str], lease: float) -> None:
    """Renews the leases of operations for ``lease`` seconds, except those that were taken over."""
    if operation_ids:
        with database.write() as connection:
            connection.execute(
                MOVES.update()
                .where(MOVES.c.id.in_(operation_ids), MOVES.c.owner == owner)
                .values(lease_until=utc_now(lease))
            )


def abandoned(
    database: Database, mine: Set[str], lease: float, *, at_work: Set[str] = frozenset(), knowledge: str
) -> list[Operation]:
    """Operations without an owner: their lease expired or was released, or their pause is over; and those of ``mine``.

    Excludes operations ``at_work``, those requested less than a ``lease`` (seconds) ago (the notified conductor acquires them),
    those that wait for an earlier operation, those that a process with the same ``knowledge`` parked, and those in a state that
    only a newer release knows. Makes one statement, and another one if it finds any.
    """
    not_begun = MOVES.c.state.in_([SagaState.REQUESTED.value, *_NOT_ACCEPTED])
    is_free = sa.or_(
        sa.and_(not_begun, MOVES.c.lease_until < utc_now(-lease)),
        sa.and_(sa.not_(not_begun), sa.or_(MOVES.c.lease_until < utc_now(), MOVES.c.owner.in_(mine))),
    )
    not_parked = sa.or_(MOVES.c.parked.is_(None), sa.not_(MOVES.c.parked.startswith(knowledge)))
    with database.read() as connection:
        found = set(
            connection.execute(
                sa.select(MOVES.c.id).where(MOVES.c.state.in_(_NOT_ENDED), not_parked, is_free, ~_MUST_WAIT)
            ).scalars()
        )
    found -= at_work
    return _select(database, MOVES.c.id.in_(found)) if found else []


def park(database: Database, operation: Operation, parked: str) -> None:
    """Releases an operation that the caller's release can't run. ``parked``: its knowledge (see `abandoned`), and why."""
    state = operation.state if operation.state is SagaState.REQUESTED else SagaState.STUCK
    with database.write() as connection:
        connection.execute(
            MOVES.update()
            .where(MOVES.c.id == operation.id, MOVES.c.epoch == operation.epoch)
            .values(owner=None, lease_until=utc_now(), parked=fitting(parked, MOVES.c.parked), state=state.value)
        )


def values_of(operation: Operation) -> dict[str, Any]:
    """The columns that the owner of an operation writes."""
    return MOVE.to_row(operation, without=_NEVER_CHANGED)


def insert_in(
    connection: sa.Connection,
    operation: Operation,
    pause: float = 0.0,
    *,
    requester: Requester | None = None,
    **more: Any,
) -> None:
    """Writes a new operation, with the time of the database's clock. ``pause``: seconds until it may begin."""
    given = MOVE.to_row(
        operation, without=frozenset({"lease_until"} | ({"started_at"} if operation.started_at is None else set()))
    )
    statement = MOVES.insert().values(
        lease_until=utc_now(pause) if operation.lease_until is None else operation.lease_until
    )
    if operation.started_at is None:
        statement = statement.values(started_at=utc_now())
    connection.execute(statement, given | vars(requester or Requester()) | more)


def requester(database: Database, operation_id: str) -> Requester:
    """The requester of an operation, which is stored until the operation has ended."""
    query = sa.select(MOVES.c.requester, MOVES.c.sealed_token).where(MOVES.c.id == operation_id)
    with database.read() as connection:
        row = connection.execute(query).one_or_none()
    return Requester() if row is None else Requester(*row)


def get(database: Database, operation_id: str) -> Operation:
    """Raises NotFound."""
    with database.read() as connection:
        row = connection.execute(_GET, {"of_operation": operation_id}).one_or_none()
    if row is None:
        raise errors.NotFound(f"Operation {operation_id} could not be found.")
    return MOVE.from_row(row)


def states(database: Database, operation_ids: Iterable[str]) -> dict[str, SagaState]:
    """operation -> its state, for those that exist."""
    query = sa.select(MOVES.c.id, MOVES.c.state).where(MOVES.c.id.in_(list(operation_ids)))
    with database.read() as connection:
        return {row.id: SagaState(row.state) for row in connection.execute(query)}


def of_server(database: Database, instance_uuid: str) -> list[Operation]:
    """All operations of a server, oldest first."""
    return _select(database, MOVES.c.instance_uuid == instance_uuid)


def of_requests(database: Database, requests: Mapping[str, str]) -> dict[str, list[OperationBrief]]:
    """request's id -> its operations, and those that replaced them, oldest first.

    ``requests``: server -> the id of a request for it. A server's operations are found by their index.
    """
    found: dict[str, list[OperationBrief]] = defaultdict(list)
    pairs = list(requests.items())
    for first in range(0, len(pairs), _BATCH):
        batch = dict(pairs[first : first + _BATCH])
        query = (
            sa.select(*BRIEF.columns)
            .where(MOVES.c.instance_uuid.in_(batch), MOVES.c.request_id.in_(batch.values()))
            .order_by(MOVES.c.started_at, MOVES.c.id)
        )
        with database.read() as connection:
            for row in connection.execute(query):
                found[row.request_id].append(BRIEF.from_row(row))
    return found


def of_migration(database: Database, migration_uuid: str) -> list[Operation]:
    """The operations of a migration, oldest first."""
    return _select(database, MOVES.c.migration_uuid == migration_uuid)


def resize_of(database: Database, migration_uuid: str) -> Operation:
    """The last move that brought a migration's server to its target, or tried to. Raises NotFound."""
    found = [operation for operation in of_migration(database, migration_uuid) if operation.recipe in RESIZES]
    if not found:
        raise errors.NotFound(f"Migration {migration_uuid} has no move.")
    return found[-1]


def unfinished(database: Database) -> list[Operation]:
    """Moves that have not ended, oldest first."""
    return _select(database, MOVES.c.state.not_in(_ENDED))


def all_operations(database: Database) -> list[Operation]:
    """Every operation in the journal, oldest first."""
    return _select(database, sa.true())


def under_way_in(connection: sa.Connection, instance_uuid: str) -> tuple[str | None, list[Operation]]:
    """The server's cell, and its operations that have not ended. Locks these against this function until the transaction ends."""
    if connection.dialect.name == "sqlite":
        # The transaction locks the whole database.
        rows = connection.execute(_MAPPED_UNDER_WAY, {"of_instance": instance_uuid}).all()
        return (rows[0].at_cell if rows else None), [MOVE.from_row(row) for row in rows if row.operation is not None]
    cell_uuid = connection.execute(_HOLD, {"of_instance": instance_uuid}).scalar_one_or_none()
    found = connection.execute(_UNDER_WAY, {"of_instance": instance_uuid})
    return cell_uuid, [MOVE.from_row(row) for row in found]


def under_work(database: Database, instance_uuids: Iterable[str]) -> set[str]:
    """Those of these servers that have an operation which has not ended."""
    found: set[str] = set()
    wanted = sorted(instance_uuids)
    for first in range(0, len(wanted), _BATCH):
        batch = MOVES.c.instance_uuid.in_(wanted[first : first + _BATCH])
        query = sa.select(MOVES.c.instance_uuid).where(batch, MOVES.c.state.not_in(_ENDED))
        with database.read() as connection:
            found.update(connection.execute(query).scalars())
    return found


def active_of_server(database: Database, instance_uuid: str) -> Operation | None:
    """The server's oldest operation that has not ended; None if there is none."""
    found = _select(database, sa.and_(MOVES.c.instance_uuid == instance_uuid, MOVES.c.state.not_in(_ENDED)))
    return found[0] if found else None


def _select(database: Database, condition: sa.ColumnElement[bool]) -> list[Operation]:
    query = sa.select(*MOVE.columns).where(condition).order_by(MOVES.c.started_at, MOVES.c.id)
    with database.read() as connection:
        return [MOVE.from_row(row) for row in connection.execute(query)]


def steps(database: Database, operation_id: str) -> list[StepRecord]:
    """The steps of the operation so far, in order."""
    with database.read() as connection:
        row = connection.execute(sa.select(MOVES.c.steps).where(MOVES.c.id == operation_id)).one_or_none()
    return [] if row is None else msgspec.convert(row.steps, list[StepRecord])
