"""Reads operations from the journal to show them, without their memories."""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa

from causeway import errors
from causeway.model.operations import Operation
from causeway.model.sagas import ENDED, SagaState
from causeway.store.api.journal import OPERATIONS
from causeway.store.api.ordered_operations import IS_OF_OPERATION, PROGRESS, REPORTED
from causeway.store.columns import RowMapper
from causeway.store.database import Database

OPERATION = RowMapper(Operation, OPERATIONS, without=frozenset({"data", "explanation"}))
_NEWEST_FIRST = (OPERATIONS.c.started_at.desc(), OPERATIONS.c.id.desc())


def get(database: Database, operation_id: str) -> Operation:
    """Raises NotFound."""
    found = _read(database, sa.select(OPERATIONS.c.id).where(OPERATIONS.c.id == operation_id))
    if not found:
        raise errors.NotFound(f"Operation {operation_id} could not be found.")
    return found[0]


def search(
    database: Database,
    *,
    instance_uuid: str | None = None,
    recipes: Collection[str] | None = None,
    state: SagaState | None = None,
    owner: str | None = None,
    host: str | None = None,
    with_ended: bool = False,
    marker: str | None = None,
    limit: int | None = None,
) -> list[Operation]:
    """Operations, newest first; those that have ended only if ``with_ended`` or ``state`` asks for them.

    ``owner``: the conductor that works on it, or did last, by its host or by one life. ``host``: a host that a step works on, or
    worked on. ``marker``: the last operation of the previous page (NotFound).
    """
    query = sa.select(OPERATIONS.c.id).order_by(*_NEWEST_FIRST)
    if instance_uuid is not None:
        query = query.where(OPERATIONS.c.instance_uuid == instance_uuid)
    if recipes is not None:
        query = query.where(OPERATIONS.c.recipe.in_(recipes))
    if state is not None:
        query = query.where(OPERATIONS.c.state == state.value)
    elif not with_ended:
        query = query.where(OPERATIONS.c.state.not_in([each.value for each in ENDED]))
    if owner is not None:
        lives = OPERATIONS.c.owner.startswith(f"{owner}/", autoescape=True)
        query = query.where(sa.or_(OPERATIONS.c.owner == owner, lives))
    if host is not None:
        query = query.where(OPERATIONS.c.hosts.contains(f"|{host}|", autoescape=True))
    if marker is not None:
        get(database, marker)
        began = sa.select(OPERATIONS.c.started_at).where(OPERATIONS.c.id == marker).scalar_subquery()
        same_time = sa.and_(OPERATIONS.c.started_at == began, OPERATIONS.c.id < marker)
        query = query.where(sa.or_(OPERATIONS.c.started_at < began, same_time))
    if limit is not None:
        query = query.limit(limit)
    return _read(database, query)


def _read(database: Database, ids: sa.Select[tuple[str]]) -> list[Operation]:
    """Reads in one statement, so that an operation, its steps and the reported progress are from the same moment."""
    wanted = ids.subquery("wanted")
    query = (
        sa.select(*OPERATION.columns, *REPORTED)
        .select_from(OPERATIONS.join(wanted, wanted.c.id == OPERATIONS.c.id).outerjoin(PROGRESS, IS_OF_OPERATION))
        .order_by(*_NEWEST_FIRST)
    )
    found = []
    with database.read() as connection:
        for row in connection.execute(query):
            operation = OPERATION.from_row(row)
            if operation.steps:
                operation.steps[-1].show(row.reported_done, row.reported_total)
            found.append(operation)
    return found
