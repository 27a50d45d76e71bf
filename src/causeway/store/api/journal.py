"""The journal of operations: who owns them, and how they are found.

`causeway.store.api.recording` writes for their owners; `causeway.store.api.wanted_operations` says whether they are still wanted.
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
from causeway.store.api_tables import InstanceMappings, Operations
from causeway.store.clock import utc_now
from causeway.store.columns import RowMapper, fitting
from causeway.store.database import Database

OPERATIONS: sa.Table = Operations.__table__  # type: ignore[assignment]
OPERATION = RowMapper(Operation, OPERATIONS, without=frozenset({"explanation"}))
BRIEF = RowMapper(OperationBrief, OPERATIONS)

# Servers in one statement.
_BATCH = 500
# Statements that are made once: an operation executes each of them a dozen times.
_ENDED = [state.value for state in ENDED]
_NOT_ACCEPTED = [state.value for state in NOT_ACCEPTED]
_NOT_ENDED = [state.value for state in SagaState if state not in ENDED]
_GET = sa.select(*OPERATION.columns).where(OPERATIONS.c.id == sa.bindparam("of_operation"))
# What the owner of an operation does not write: what it is, who has it, and what users ask of it meanwhile. Its steps are
# written by name.
_NEVER_CHANGED = frozenset(
    {"id", "migration_uuid", "instance_uuid", "epoch", "started_at", "cancel_requested", "lease_until", "steps"}
)
# The recipes that bring a server to its target. Confirms and reverts begin with their memory.
RESIZES = with_former_names(RESIZE)
_EARLIER = OPERATIONS.alias("earlier")
_BESIDE_VOLUME_IMAGE = recipes_where(lambda kind: kind.may_begin_beside_volume_image)
_MUST_WAIT = sa.exists().where(
    _EARLIER.c.instance_uuid == OPERATIONS.c.instance_uuid,
    _EARLIER.c.id != OPERATIONS.c.id,
    _EARLIER.c.started_at < OPERATIONS.c.started_at,
    # One that is not accepted is the request of somebody who was slower than this one's, and is about to be refused.
    _EARLIER.c.state.not_in([*_NOT_ACCEPTED, *_ENDED]),
    _EARLIER.c.recipe.not_in(recipes_where(lambda kind: not kind.is_waited_for)),
    sa.or_(_EARLIER.c.recipe != CREATE_VOLUME_IMAGE, OPERATIONS.c.recipe.not_in(_BESIDE_VOLUME_IMAGE)),
)
# Two requests for a server meet at its mapping, which both lock.
_HOLD = (
    sa.select(InstanceMappings.cell_uuid)
    .where(InstanceMappings.instance_uuid == sa.bindparam("of_instance"))
    .with_for_update()
)
_AT_CELL = sa.select(InstanceMappings.cell_uuid).where(InstanceMappings.instance_uuid == OPERATIONS.c.instance_uuid)
_UNDER_WAY = sa.select(*OPERATION.columns).where(
    OPERATIONS.c.instance_uuid == sa.bindparam("of_instance"), OPERATIONS.c.state.in_(_NOT_ENDED)
)
_MAPPED_UNDER_WAY = (
    sa.select(InstanceMappings.cell_uuid.label("at_cell"), OPERATIONS.c.id.label("operation"), *OPERATION.columns)
    .select_from(
        sa.outerjoin(
            InstanceMappings,
            OPERATIONS,
            sa.and_(OPERATIONS.c.instance_uuid == InstanceMappings.instance_uuid, OPERATIONS.c.state.in_(_NOT_ENDED)),
        )
    )
    .where(InstanceMappings.instance_uuid == sa.bindparam("of_instance"))
)
_LEASE_IS_OVER = OPERATIONS.c.lease_until < utc_now()
_TO_ACQUIRE = sa.select(
    *OPERATION.columns,
    _MUST_WAIT.label("must_wait"),
    sa.case((_LEASE_IS_OVER, 1), else_=0).label("is_over"),
    _AT_CELL.scalar_subquery().label("at_cell"),
    OPERATIONS.c.requester,
).where(OPERATIONS.c.id == sa.bindparam("of_operation"))


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
    operation = OPERATION.from_row(row)
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
            OPERATIONS.update()
            .where(
                OPERATIONS.c.id == operation_id,
                OPERATIONS.c.epoch == operation.epoch,
                OPERATIONS.c.state == operation.state.value,
            )
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
            OPERATIONS.c.instance_uuid == instance_uuid,
            sa.or_(
                OPERATIONS.c.state == SagaState.REQUESTED.value,
                sa.and_(OPERATIONS.c.state == SagaState.RUNNING.value, OPERATIONS.c.owner.is_(None)),
            ),
        ),
    )


def renew(database: Database, owner: str, operation_ids: list[str], lease: float) -> None:
    """Renews the leases of operations for ``lease`` seconds, except those that were taken over."""
    if operation_ids:
        with database.write() as connection:
            connection.execute(
                OPERATIONS.update()
                .where(OPERATIONS.c.id.in_(operation_ids), OPERATIONS.c.owner == owner)
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
    not_begun = OPERATIONS.c.state.in_([SagaState.REQUESTED.value, *_NOT_ACCEPTED])
    is_free = sa.or_(
        sa.and_(not_begun, OPERATIONS.c.lease_until < utc_now(-lease)),
        sa.and_(sa.not_(not_begun), sa.or_(OPERATIONS.c.lease_until < utc_now(), OPERATIONS.c.owner.in_(mine))),
    )
    not_parked = sa.or_(OPERATIONS.c.parked.is_(None), sa.not_(OPERATIONS.c.parked.startswith(knowledge)))
    with database.read() as connection:
        found = set(
            connection.execute(
                sa.select(OPERATIONS.c.id).where(OPERATIONS.c.state.in_(_NOT_ENDED), not_parked, is_free, ~_MUST_WAIT)
            ).scalars()
        )
    found -= at_work
    return _select(database, OPERATIONS.c.id.in_(found)) if found else []


def park(database: Database, operation: Operation, parked: str) -> None:
    """Releases an operation that the caller's release can't run. ``parked``: its knowledge (see `abandoned`), and why."""
    state = operation.state if operation.state is SagaState.REQUESTED else SagaState.STUCK
    with database.write() as connection:
        connection.execute(
            OPERATIONS.update()
            .where(OPERATIONS.c.id == operation.id, OPERATIONS.c.epoch == operation.epoch)
            .values(owner=None, lease_until=utc_now(), parked=fitting(parked, OPERATIONS.c.parked), state=state.value)
        )


def values_of(operation: Operation) -> dict[str, Any]:
    """The columns that the owner of an operation writes."""
    return OPERATION.to_row(operation, without=_NEVER_CHANGED)


def insert_in(
    connection: sa.Connection,
    operation: Operation,
    pause: float = 0.0,
    *,
    requester: Requester | None = None,
    **more: Any,
) -> None:
    """Writes a new operation, with the time of the database's clock. ``pause``: seconds until it may begin."""
    given = OPERATION.to_row(
        operation, without=frozenset({"lease_until"} | ({"started_at"} if operation.started_at is None else set()))
    )
    statement = OPERATIONS.insert().values(
        lease_until=utc_now(pause) if operation.lease_until is None else operation.lease_until
    )
    if operation.started_at is None:
        statement = statement.values(started_at=utc_now())
    connection.execute(statement, given | vars(requester or Requester()) | more)


def requester(database: Database, operation_id: str) -> Requester:
    """The requester of an operation, which is stored until the operation has ended."""
    query = sa.select(OPERATIONS.c.requester, OPERATIONS.c.sealed_token).where(OPERATIONS.c.id == operation_id)
    with database.read() as connection:
        row = connection.execute(query).one_or_none()
    return Requester() if row is None else Requester(*row)


def get(database: Database, operation_id: str) -> Operation:
    """Raises NotFound."""
    with database.read() as connection:
        row = connection.execute(_GET, {"of_operation": operation_id}).one_or_none()
    if row is None:
        raise errors.NotFound(f"Operation {operation_id} could not be found.")
    return OPERATION.from_row(row)


def states(database: Database, operation_ids: Iterable[str]) -> dict[str, SagaState]:
    """operation -> its state, for those that exist."""
    query = sa.select(OPERATIONS.c.id, OPERATIONS.c.state).where(OPERATIONS.c.id.in_(list(operation_ids)))
    with database.read() as connection:
        return {row.id: SagaState(row.state) for row in connection.execute(query)}


def of_server(database: Database, instance_uuid: str) -> list[Operation]:
    """All operations of a server, oldest first."""
    return _select(database, OPERATIONS.c.instance_uuid == instance_uuid)


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
            .where(OPERATIONS.c.instance_uuid.in_(batch), OPERATIONS.c.request_id.in_(batch.values()))
            .order_by(OPERATIONS.c.started_at, OPERATIONS.c.id)
        )
        with database.read() as connection:
            for row in connection.execute(query):
                found[row.request_id].append(BRIEF.from_row(row))
    return found


def of_migration(database: Database, migration_uuid: str) -> list[Operation]:
    """The operations of a migration, oldest first."""
    return _select(database, OPERATIONS.c.migration_uuid == migration_uuid)


def resize_of(database: Database, migration_uuid: str) -> Operation:
    """The last move that brought a migration's server to its target, or tried to. Raises NotFound."""
    found = [operation for operation in of_migration(database, migration_uuid) if operation.recipe in RESIZES]
    if not found:
        raise errors.NotFound(f"Migration {migration_uuid} has no move.")
    return found[-1]


def unfinished(database: Database) -> list[Operation]:
    """Moves that have not ended, oldest first."""
    return _select(database, OPERATIONS.c.state.not_in(_ENDED))


def all_operations(database: Database) -> list[Operation]:
    """Every operation in the journal, oldest first."""
    return _select(database, sa.true())


def under_way_in(connection: sa.Connection, instance_uuid: str) -> tuple[str | None, list[Operation]]:
    """The server's cell, and its operations that have not ended. Locks these against this function until the transaction ends."""
    if connection.dialect.name == "sqlite":
        # The transaction locks the whole database.
        rows = connection.execute(_MAPPED_UNDER_WAY, {"of_instance": instance_uuid}).all()
        return (rows[0].at_cell if rows else None), [
            OPERATION.from_row(row) for row in rows if row.operation is not None
        ]
    cell_uuid = connection.execute(_HOLD, {"of_instance": instance_uuid}).scalar_one_or_none()
    found = connection.execute(_UNDER_WAY, {"of_instance": instance_uuid})
    return cell_uuid, [OPERATION.from_row(row) for row in found]


def under_work(database: Database, instance_uuids: Iterable[str]) -> set[str]:
    """Those of these servers that have an operation which has not ended."""
    found: set[str] = set()
    wanted = sorted(instance_uuids)
    for first in range(0, len(wanted), _BATCH):
        batch = OPERATIONS.c.instance_uuid.in_(wanted[first : first + _BATCH])
        query = sa.select(OPERATIONS.c.instance_uuid).where(batch, OPERATIONS.c.state.not_in(_ENDED))
        with database.read() as connection:
            found.update(connection.execute(query).scalars())
    return found


def active_of_server(database: Database, instance_uuid: str) -> Operation | None:
    """The server's oldest operation that has not ended; None if there is none."""
    found = _select(database, sa.and_(OPERATIONS.c.instance_uuid == instance_uuid, OPERATIONS.c.state.not_in(_ENDED)))
    return found[0] if found else None


def _select(database: Database, condition: sa.ColumnElement[bool]) -> list[Operation]:
    query = sa.select(*OPERATION.columns).where(condition).order_by(OPERATIONS.c.started_at, OPERATIONS.c.id)
    with database.read() as connection:
        return [OPERATION.from_row(row) for row in connection.execute(query)]


def steps(database: Database, operation_id: str) -> list[StepRecord]:
    """The steps of the operation so far, in order."""
    with database.read() as connection:
        row = connection.execute(sa.select(OPERATIONS.c.steps).where(OPERATIONS.c.id == operation_id)).one_or_none()
    return [] if row is None else msgspec.convert(row.steps, list[StepRecord])
