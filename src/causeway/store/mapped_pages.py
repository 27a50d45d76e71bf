"""Pages of servers made of the instance mappings: asks only the cells that have a page's rows, and only for these rows.

A mapping has everything by which the usual list is sorted and filtered: the server's project, user and time of creation, and
whether its row is deleted. So the API database knows which servers are on a page. Read, in this order:

1. *the mappings* behind the marker, as many as the page needs, in its order (one statement);
2. *their rows*, by uuid, in the cells that the mappings name (one statement per cell of the page, all at once), and build
   requests of servers without a cell;
3. *the moves* that are running, or ended after step 1 began (one statement). A mapping changes only in a move or when a server
   gets its first cell. Servers of the page that may have moved between 1 and 2, and those whose row was missing, are read again
   until their mapping is the same before and after.

A server has one mapping, and a move does not change its place in the order, so it is listed exactly once. If a row is deleted
but its mapping does not say so yet, the server is left out, and the next mappings fill the page.

If a page can't be made like this, `read` returns None and all cells are asked (`causeway.store.listing`). That is so with other
filters or sort keys, and if a cell is down.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from causeway import errors
from causeway.model import operations
from causeway.model.host import CellMapping
from causeway.model.sagas import ENDED, SagaState
from causeway.store.api import build_requests, mappings
from causeway.store.api_tables import Operations
from causeway.store.cells import Cells
from causeway.store.conditions import Deleted, OneOf
from causeway.store.database import Database, utcnow
from causeway.store.listed import Listed
from causeway.store.server_rows import (
    Key,
    Page,
    ServerQuery,
    behind,
    key_of,
    load,
    look_again,
    of_request,
    ordered,
    select_some,
    sort_rows,
)

LOG = logging.getLogger(__name__)

OPERATIONS: sa.Table = Operations.__table__  # type: ignore[assignment]
TABLE = mappings.TABLE

# How far the clocks of the services may be apart.
CLOCK_SKEW = timedelta(seconds=5)
# Mappings beyond what the page needs: servers that are deleted, and their mappings do not say so yet.
SLACK = 10
# Columns of instances -> the same of their mappings; none is ever null.
COLUMNS: dict[str, sa.Column[Any]] = {
    "created_at": TABLE.c.created_at,
    "uuid": TABLE.c.instance_uuid,
    "project_id": TABLE.c.project_id,
    "user_id": TABLE.c.user_id,
}
ALIVE = Deleted(False)
IN_ONE_CELL = (operations.BUILD, operations.DELETE)


class _AskAllCells(Exception):
    """The page can't be made of mappings."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    uuid: str
    cell_uuid: str | None
    key: Key


def serves(query: ServerQuery) -> bool:
    """Whether the mappings have everything by which a query filters and sorts."""
    others = [condition for condition in query.conditions if condition != ALIVE]
    return (
        len(others) < len(query.conditions)
        and all(isinstance(one, OneOf) and one.column in COLUMNS for one in others)
        and all(key.column in COLUMNS for key in query.keys)
    )


def read(cells: Cells, query: ServerQuery) -> Page | None:
    """One page; None if all cells must be asked for it."""
    if cells.any_down or not serves(query):
        return None
    try:
        return _read(cells, query)
    except (_AskAllCells, errors.DatabaseFailed, errors.NotFound):
        # Whatever the error is: asking all cells handles cells that are down, and invalid markers.
        return None


def may_have_moved(since: datetime) -> sa.Select[Any]:
    """Servers whose mapping may have changed since ``since``: their move is running, or ended later."""
    running = [state.value for state in SagaState if state not in ENDED]
    return sa.select(OPERATIONS.c.instance_uuid).where(
        # Builds do not count: they give a server its first cell, and there may be thousands.
        OPERATIONS.c.recipe.not_in(IN_ONE_CELL),
        sa.or_(OPERATIONS.c.state.in_(running), OPERATIONS.c.ended_at >= since),
    )


def _read(cells: Cells, query: ServerQuery) -> Page:
    started = utcnow() - CLOCK_SKEW
    cursor = None if query.marker is None else _key_of_marker(cells.api, query)
    wanted = query.limit + 1
    found: list[Listed] = []
    asked: set[str] = set()
    while True:
        size = wanted - len(found) + SLACK
        candidates = _candidates(cells.api, query, cursor, size)
        rows = _rows_of(cells, query, candidates)
        asked.update(candidate.cell_uuid for candidate in candidates if candidate.cell_uuid is not None)
        found += _settle(cells, query, candidates, rows, started)
        if len(found) >= wanted or len(candidates) < size:
            break
        cursor = candidates[-1].key
    page = Page(found[: query.limit], len(found) > query.limit, [])
    if page.more and query.lists_down_cells:
        _check_that_all_answer(cells, asked)
    return page


def _key_of_marker(api: Database, query: ServerQuery) -> Key:
    statement = sa.select(*(COLUMNS[key.column] for key in query.keys)).where(TABLE.c.instance_uuid == query.marker)
    if query.project_id is not None:
        statement = statement.where(TABLE.c.project_id == query.project_id)
    with api.read() as connection:
        row = connection.execute(statement).one_or_none()
    if row is None:
        raise _AskAllCells
    return tuple(row)


def _candidates(api: Database, query: ServerQuery, cursor: Key | None, size: int) -> list[_Candidate]:
    dialect = api.engine.dialect.name
    # "= false", not "IS false", for which MariaDB uses no index.
    chosen = [TABLE.c.deleted == sa.false()]
    if query.project_id is not None:
        chosen.append(TABLE.c.project_id == query.project_id)
    for condition in query.conditions:
        if isinstance(condition, OneOf):
            chosen.append(condition.clause_on(COLUMNS[condition.column]))
    if cursor is not None:
        first, column = query.keys[0], COLUMNS[query.keys[0].column]
        if column is TABLE.c.created_at:
            # Redundant, but it lets the database use an index.
            chosen.append(column <= cursor[0] if first.descending else column >= cursor[0])
        chosen.append(behind(query, cursor, dialect, COLUMNS))
    keys = [COLUMNS[key.column] for key in query.keys]
    statement = (
        sa.select(TABLE.c.instance_uuid, TABLE.c.cell_uuid, *(key.label(None) for key in keys))
        .where(*chosen)
        .order_by(*(ordered(column, key, dialect) for column, key in zip(keys, query.keys, strict=True)))
        .limit(size)
    )
    with api.read() as connection:
        return [_Candidate(row[0], row[1], tuple(row[2:])) for row in connection.execute(statement)]


def _rows_of(cells: Cells, query: ServerQuery, candidates: list[_Candidate]) -> dict[str, Listed]:
    by_cell: dict[str | None, list[str]] = defaultdict(list)
    for candidate in candidates:
        by_cell[candidate.cell_uuid].append(candidate.uuid)
    requests = build_requests.find_all(cells.api, by_cell.pop(None, []))
    rows = {uuid: of_request(request) for uuid, request in requests.items()}

    def ask(cell: CellMapping, database: Database) -> list[Listed]:
        return load(cell.uuid, database, query, select_some(query), {"listed": by_cell[cell.uuid]})

    answers = cells.ask([uuid for uuid in by_cell if uuid is not None], ask)
    if answers.down:
        raise _AskAllCells
    for of_cell in answers.by_cell.values():
        rows.update({row.uuid: row for row in of_cell})
    return rows


def _settle(
    cells: Cells,
    query: ServerQuery,
    candidates: list[_Candidate],
    rows: dict[str, Listed],
    started: datetime,
) -> list[Listed]:
    """The valid rows, in order."""
    if not candidates:
        return []
    with cells.api.read() as connection:
        doubtful = set(connection.execute(may_have_moved(started)).scalars())
    settled: list[Listed] = []
    again: dict[str, str | None] = {}
    for candidate in candidates:
        row = rows.get(candidate.uuid)
        if row is None or candidate.uuid in doubtful:
            again[candidate.uuid] = candidate.cell_uuid
        elif query.matches(row):
            settled.append(row)
    if again:
        settled += look_again(cells, query, again, {}, set())
        sort_rows(query, settled)
    keys = {candidate.uuid: candidate.key for candidate in candidates}
    for row in settled:
        if key_of(query, row) != keys[row.uuid]:
            LOG.warning("Server %s and its mapping disagree", row.uuid)
            raise _AskAllCells
    return settled


def _check_that_all_answer(cells: Cells, asked: set[str]) -> None:
    others = {cell.uuid for cell in cells.mappings()} - asked
    if cells.ask(sorted(others), lambda _cell, database: database.ping()).down:
        raise _AskAllCells
