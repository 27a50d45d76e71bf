"""Lists the servers of all cells, merged, sorted and paged; each server exactly once, also while it moves.

During a move between cells a server has two rows, and after its confirm or revert one again. The rows of different cells can't
be read at one instant. The order of reading makes the list right:

1. *Build requests* (servers without a cell). A server's row is in its cell before its build request is deleted. So a server
   that has no build request any more has a row when step 2 begins.
2. *All cells at once*, including hidden copies: the ``hidden`` flag follows from the mapping, but may be set later.
3. *The mappings* of all servers seen, and of all servers with a move that is running or ended after step 1 began (one
   statement). A server is listed only with the row of the cell that its mapping names.

This lists each server exactly once, for these reasons. A mapping changes only in a move (at its pivot), or when a server gets
its first cell. Take a server that exists and fits the conditions all the time.

- If its mapping did not change between 1 and 3, the mapped cell had its row all the time, and step 2 saw it there. Rows in other
  cells (the copies of a move) are discarded. So it is listed once.
- If its mapping changed, it has a move that is running or ended after 1 began, and step 3 names it. This holds even if step 2
  did not see it at all, because it read the new cell before the copy was written and the old cell after the hard delete. Such a
  server is in doubt, and so is one that was seen only outside of the mapped cell. Servers in doubt are read again by uuid in
  the mapped cell, and then their mapping is read again. If the mapping is the same before and after, the row is right.
  Otherwise this is repeated, a few times at most.

A server in doubt without a mapping was deleted, and is skipped. A server that is mapped to a cell without its row (its build is
just being placed) is listed with what was seen before. A deleted row in the mapped cell is tested by the conditions like any
other.

Order and pages: rows are ordered by the sort keys and, last, the uuid, but not by row ids, which differ between cells. A page
begins after the key of its marker. The cells' rows are merged from small batches (`causeway.store.streams`). Rows up to the
*frontier*, the end of the batch that ends first, are used; the next round begins there. So step 2 may read a cell several
times. This changes nothing above, since all of these reads are between 1 and 3.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import sqlalchemy as sa

from causeway import errors
from causeway.store import mapped_pages
from causeway.store.api import build_requests, mappings
from causeway.store.cell.instances import TABLE
from causeway.store.cells import Cells
from causeway.store.database import Database, utcnow
from causeway.store.listed import AttachedVolume, Listed
from causeway.store.mapped_pages import CLOCK_SKEW, OPERATIONS, may_have_moved
from causeway.store.server_rows import (
    ALL_COLUMNS,
    ATTEMPTS,
    NEWEST_FIRST,
    Key,
    Page,
    ServerQuery,
    SortKey,
    after,
    behind,
    is_after,
    key_of,
    load,
    look_again,
    of_request,
    ordered,
    select_one,
    select_rows,
    sort_rows,
)
from causeway.store.streams import SLACK, Batch, Streams


def list_servers(cells: Cells, query: ServerQuery) -> Page:
    """One page of servers. Raises BadRequest if the marker is unknown."""
    if query.limit == 0:
        return Page([], False, [])
    return mapped_pages.read(cells, query) or _of_all_cells(cells, query)


def _of_all_cells(cells: Cells, query: ServerQuery) -> Page:
    started = utcnow() - CLOCK_SKEW
    requests = _build_requests(cells.api, query)
    cursor = None if query.marker is None else _key_of_marker(cells, query, requests)
    streams = Streams(
        cells,
        query,
        cursor,
        lambda cell_uuid, database, end, size: _read_cell(cell_uuid, database, query, end, size),
        [row for row in requests if after(query, row, cursor)],
    )
    found: dict[str, Listed] = {}
    wanted = query.limit + 1
    while True:
        rows, frontier = streams.take(wanted - len(found) + SLACK)
        for row in _settle(cells, query, rows, started, cursor, frontier, set(streams.down)):
            found.setdefault(row.uuid, row)
        if len(found) >= wanted or frontier is None:
            servers = list(found.values())
            return Page(servers[: query.limit], len(servers) > query.limit, list(streams.down.values()))
        cursor = frontier


# --- reading


def _build_requests(api: Database, query: ServerQuery) -> list[Listed]:
    found = []
    for request in build_requests.list_for(api, query.project_id):
        row = of_request(request)
        if query.matches(row):
            found.append(row)
    return found


def _read_cell(cell_uuid: str, database: Database, query: ServerQuery, cursor: Key | None, size: int) -> Batch:
    dialect = database.engine.dialect.name
    statement = select_rows(query)
    if query.project_id is not None:
        statement = statement.where(TABLE.c.project_id == query.project_id)
    tests = []
    for condition in query.conditions:
        clause = condition.clause()
        if clause is None:
            tests.append(condition)
        else:
            statement = statement.where(clause)
    if cursor is not None:
        statement = statement.where(behind(query, cursor, dialect))
    statement = statement.order_by(*(ordered(TABLE.c[key.column], key, dialect) for key in query.keys)).limit(size)
    rows = load(cell_uuid, database, query, statement)
    end = key_of(query, rows[-1]) if len(rows) == size else None
    return Batch([row for row in rows if all(test.matches(row) for test in tests)], end)


def _key_of_marker(cells: Cells, query: ServerQuery, requests: list[Listed]) -> Key:
    for row in requests:
        if row.uuid == query.marker:
            return key_of(query, row)
    marker = str(query.marker)
    mapped = mappings.cells_of(cells.api, [marker])
    if mapped.get(marker) is None:
        # A build request that does not fit the conditions can be the marker of a page all the same.
        request = build_requests.find(cells.api, marker)
        if request is not None and query.project_id in (None, request.project_id):
            return key_of(query, of_request(request))
    else:
        database = cells.database(str(mapped[marker]))
        rows = load("", database, query, select_rows(query).where(TABLE.c.uuid == marker))
        if rows and query.project_id in (None, rows[0].values["project_id"]):
            return key_of(query, rows[0])
    raise errors.BadRequest(f"marker [{marker}] not found")


# --- the authority


def _mapped(
    api: Database, uuids: Iterable[str], project_id: str | None, started: datetime
) -> tuple[dict[str, str | None], set[str]]:
    """The cells of servers, and the servers that may have changed cells since ``started``, which are in the first too."""
    table = mappings.TABLE
    seen = sa.select(table.c.instance_uuid, table.c.cell_uuid, sa.literal(0).label("moving")).where(
        table.c.instance_uuid.in_(list(uuids))
    )
    moved = may_have_moved(started)
    moving = sa.select(table.c.instance_uuid, table.c.cell_uuid, sa.literal(1)).where(table.c.instance_uuid.in_(moved))
    if project_id is not None:
        moving = moving.where(table.c.project_id == project_id)
    cells: dict[str, str | None] = {}
    doubtful: set[str] = set()
    with api.read() as connection:
        for uuid, cell_uuid, is_moving in connection.execute(sa.union_all(seen, moving)):
            cells[uuid] = cell_uuid
            if is_moving:
                doubtful.add(uuid)
    return cells, doubtful


def _settle(
    cells: Cells,
    query: ServerQuery,
    rows: list[Listed],
    started: datetime,
    cursor: Key | None,
    frontier: Key | None,
    down: set[str],
) -> list[Listed]:
    """The valid rows, in order: of each server, the one of the cell that its mapping names."""
    seen: dict[str, dict[str | None, Listed]] = {}
    for row in rows:
        seen.setdefault(row.uuid, {})[row.cell_uuid] = row
    mapped, doubtful = _mapped(cells.api, seen, query.project_id, started)
    settled: list[Listed] = []
    for uuid, copies in seen.items():
        if uuid in doubtful or uuid not in mapped:
            continue
        home = mapped[uuid]
        if home in copies:
            settled.append(copies[home])
        else:
            doubtful.add(uuid)
    if not doubtful:
        return settled
    for row in look_again(cells, query, {uuid: mapped[uuid] for uuid in doubtful}, seen, down):
        key = key_of(query, row)
        if (cursor is None or is_after(query, key, cursor)) and not (frontier and is_after(query, key, frontier)):
            settled.append(row)
    sort_rows(query, settled)
    return settled


# --- one server


def get_server(
    cells: Cells,
    uuid: str,
    *,
    columns: frozenset[str] | None = None,
    tags: bool = True,
    volumes: bool = False,
    group: bool = False,
) -> Listed:
    """A server from the cell that its mapping names, or its build request. ``columns`` None: all columns.

    If the server changes its cell between reading the mapping and the row, looks it up again. Raises ServerNotFound, and
    DatabaseFailed if its cell is down.
    """
    query = ServerQuery(None, 1, columns=ALL_COLUMNS if columns is None else columns, tags=tags, volumes=volumes)
    previous: str | None = ""
    for _attempt in range(ATTEMPTS):
        home, group_uuid = mappings.home_of(cells.api, uuid, with_group=group)
        if home == previous:
            break
        found = _read_one(cells, query, uuid, home)
        if found is not None:
            found.group = group_uuid
            return found
        previous = home
    raise errors.ServerNotFound(uuid)


def _read_one(cells: Cells, query: ServerQuery, uuid: str, home: str | None) -> Listed | None:
    if home is None:
        request = build_requests.find(cells.api, uuid)
        return None if request is None else of_request(request)
    rows = load(home, cells.database(home), query, select_one(query), {"of_uuid": uuid})
    return rows[0] if rows else None


__all__ = [
    "ALL_COLUMNS",
    "NEWEST_FIRST",
    "OPERATIONS",
    "AttachedVolume",
    "Listed",
    "Page",
    "ServerQuery",
    "SortKey",
    "get_server",
    "list_servers",
]
