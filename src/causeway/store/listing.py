"""Lists the servers of all cells, merged, sorted and paged; each server exactly once, also while it moves.

During a move from cell to cell a server has two rows, for a moment after a confirm or revert again one, and the rows of
different cells can't be read at one instant. What makes a list right is the order of reading:

1. *build requests* (servers without a cell). A server's row is in its cell before its build request goes, so whoever is not
   among the build requests any more has a row when step 2 begins.
2. *all cells at once*, hidden copies included: the ``hidden`` flag is derived from the mapping and may lag.
3. *the mappings* of all servers seen, and of all servers that have a move that runs now or ended after step 1 began
   (one statement). A server is listed with the row of the cell that its mapping names, and with no other.

Why that gives each server exactly once. A mapping changes only within a move (its pivot) or when a server gets its first
cell. Take a server that is there and fits the conditions all the time.

- Its mapping did not change between 1 and 3. Then the mapped cell had its row all the time, step 2 saw it there, and rows in
  other cells (the copies of a move) are thrown away: listed once.
- Its mapping did change: then it has a move that ended after 1 began or runs still, and step 3 names it - even if step 2 saw
  it nowhere, because it was read in its new cell before the copy was written and in its old cell after the hard delete. It
  also is in doubt if it was seen, but not in the mapped cell. Servers in doubt are read again by uuid in the mapped cell, and
  after that their mapping is read again. If the mapping is the same before and after, the row is the right one; otherwise
  again, a few times at most.

A server in doubt whose mapping is gone was deleted: it is dropped. One that is mapped to a cell without its row (its build is
being handed over at this moment) is listed with what was seen before. A deleted row in the mapped cell is judged by the
conditions like any other.

Order and pages. Rows are ordered by the sort keys and, last, the uuid; row ids differ from cell to cell and are no part of
it. A page begins after the key of its marker. A round reads a batch from each cell; if a cell has more than its batch, only
what is not behind the end of that batch in the order (the *frontier*) is used, and the next round begins there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from typing import Any

import msgspec
import sqlalchemy as sa

from causeway import errors
from causeway.model.host import CellMapping
from causeway.model.instance import Instance
from causeway.model.moves import MOVE_ENDED, MoveState
from causeway.store.api import build_requests, mappings
from causeway.store.api_tables import Moves
from causeway.store.cell import block_devices, instances
from causeway.store.cell.instances import TABLE, TAGS
from causeway.store.cells import Cells
from causeway.store.conditions import Condition, value_of
from causeway.store.database import Database, utcnow

MOVES: sa.Table = Moves.__table__  # type: ignore[assignment]
DEVICES = block_devices.TABLE

# How far the clocks of the services may be apart.
CLOCK_SKEW = timedelta(seconds=5)
# How often a server that goes on moving is looked for. Each time takes a whole move between two reads.
ATTEMPTS = 4
# Rows that a cell is asked for beyond what the page needs: copies of moves that will be thrown away.
SLACK = 10
_NEEDED = frozenset({"uuid", "project_id", "user_id", "display_name", "flavor", "created_at"})
_COLLATIONS = {"postgresql": "C", "mysql": "utf8mb4_bin", "mariadb": "utf8mb4_bin"}


@dataclass(frozen=True)
class SortKey:
    """A column of the instances to sort by; what is not set counts as smallest."""

    column: str
    descending: bool = False


ALL_COLUMNS = frozenset(name for name in instances.MAPPER.fields if name != "hidden")
NEWEST_FIRST = (SortKey("created_at", descending=True),)


@dataclass
class ServerQuery:
    """What to list. ``project_id`` None: of all projects. ``columns``: fields of the instances that the caller shows."""

    project_id: str | None
    limit: int
    conditions: list[Condition] = field(default_factory=list)
    sort: tuple[SortKey, ...] = NEWEST_FIRST
    marker: str | None = None
    columns: frozenset[str] = frozenset()
    tags: bool = False
    volumes: bool = False

    @property
    def keys(self) -> tuple[SortKey, ...]:
        return (*self.sort, SortKey("uuid"))

    @property
    def loaded(self) -> list[str]:
        """The columns to read."""
        names = set(self.columns | _NEEDED).union(*(condition.columns for condition in self.conditions))
        names.update("flavor" if key.column == "flavorid" else key.column for key in self.sort)
        return sorted(names)

    @property
    def loads_tags(self) -> bool:
        return self.tags or any(c.needs_tags for c in self.conditions)

    def matches(self, instance: Instance) -> bool:
        if self.project_id is not None and instance.project_id != self.project_id:
            return False
        return all(condition.matches(instance) for condition in self.conditions)


@dataclass(frozen=True, slots=True)
class AttachedVolume:
    id: str
    delete_on_termination: bool


@dataclass
class Listed:
    """A server with the cell whose row it is (None: a build request)."""

    instance: Instance
    cell_uuid: str | None
    volumes: list[AttachedVolume] = field(default_factory=list)


@dataclass
class Page:
    """``more``: there are servers behind the last one. ``down``: cells that did not answer; their servers are missing."""

    servers: list[Listed]
    more: bool
    down: list[CellMapping]


Key = tuple[Any, ...]


@dataclass
class _Batch:
    rows: list[Listed]
    # The key of the last row if there may be more.
    end: Key | None


def list_servers(cells: Cells, query: ServerQuery) -> Page:
    """One page of servers; raises BadRequest if the marker is unknown."""
    if query.limit == 0:
        return Page([], False, [])
    started = utcnow() - CLOCK_SKEW
    requests = _build_requests(cells.api, query)
    cursor = None if query.marker is None else _key_of_marker(cells, query, requests)
    found: dict[str, Listed] = {}
    down: dict[str, CellMapping] = {}
    wanted = query.limit + 1
    while True:
        size = _batch_size(query, wanted - len(found))
        answers = cells.ask_all(
            lambda cell, database, cursor=cursor, size=size: _read_cell(cell.uuid, database, query, cursor, size)  # type: ignore[misc]
        )
        down.update({cell.uuid: cell for cell in answers.down})
        rows = [row for row in requests if _after(query, row, cursor)]
        rows += [row for batch in answers.by_cell.values() for row in batch.rows]
        frontier = _frontier(query, rows, [batch.end for batch in answers.by_cell.values()], 2 * size + 100)
        for row in _settle(cells, query, rows, started, cursor, frontier, set(down)):
            found.setdefault(row.instance.uuid, row)
        if len(found) >= wanted or frontier is None:
            servers = list(found.values())
            return Page(servers[: query.limit], len(servers) > query.limit, list(down.values()))
        cursor = frontier


def _batch_size(query: ServerQuery, missing: int) -> int:
    if any(condition.clause() is None for condition in query.conditions):
        return max(2 * missing, 200)
    return missing + SLACK


# --- order


def _key(query: ServerQuery, instance: Instance) -> Key:
    return tuple(value_of(instance, key.column) for key in query.keys)


def _sort(query: ServerQuery, rows: list[Listed]) -> None:
    for key in reversed(query.keys):
        rows.sort(key=lambda row: _comparable(value_of(row.instance, key.column)), reverse=key.descending)


def _comparable(value: Any) -> tuple[bool, Any]:
    return (False, 0) if value is None else (True, value)


def _is_after(query: ServerQuery, one: Key, other: Key) -> bool:
    """Whether a key comes behind another one in the order."""
    for key, mine, theirs in zip(query.keys, one, other, strict=True):
        if mine != theirs:
            return (_comparable(mine) < _comparable(theirs)) == key.descending
    return False


def _after(query: ServerQuery, row: Listed, cursor: Key | None) -> bool:
    return cursor is None or _is_after(query, _key(query, row.instance), cursor)


def _frontier(query: ServerQuery, rows: list[Listed], ends: list[Key | None], most: int) -> Key | None:
    """Sorts the rows and cuts off those that can't be judged yet; returns the key up to which all is known (None: all)."""
    _sort(query, rows)
    frontier: Key | None = None
    for end in ends:
        if end is not None and (frontier is None or _is_after(query, frontier, end)):
            frontier = end
    if frontier is not None:
        while rows and _is_after(query, _key(query, rows[-1].instance), frontier):
            rows.pop()
    if len(rows) > most:
        frontier = _key(query, rows[most - 1].instance)
        del rows[most:]
    return frontier


def _ordered(column: sa.ColumnElement[Any], key: SortKey, dialect: str) -> sa.ColumnElement[Any]:
    ordered = _collated(column, dialect)
    ordered = ordered.desc() if key.descending else ordered.asc()
    if dialect == "postgresql":
        return ordered.nulls_last() if key.descending else ordered.nulls_first()
    return ordered


def _collated(column: sa.ColumnElement[Any], dialect: str) -> sa.ColumnElement[Any]:
    """Strings in the order of their code points, as we compare them ourselves, whatever the database is set to."""
    if isinstance(column.type, sa.String) and dialect in _COLLATIONS:
        return column.collate(_COLLATIONS[dialect])
    return column


def _behind(query: ServerQuery, cursor: Key, dialect: str) -> sa.ColumnElement[bool]:
    """SQL: rows behind the cursor."""
    ways: list[sa.ColumnElement[bool]] = []
    same: list[sa.ColumnElement[bool]] = []
    for key, value in zip(query.keys, cursor, strict=True):
        column = _collated(TABLE.c[key.column], dialect)
        further: sa.ColumnElement[bool]
        if value is None:
            further = sa.false() if key.descending else column.is_not(None)
            equal = column.is_(None)
        else:
            further = sa.or_(column < value, column.is_(None)) if key.descending else column > value
            equal = column == value
        ways.append(sa.and_(*same, further))
        same.append(equal)
    return sa.or_(*ways)


# --- reading


def _build_requests(api: Database, query: ServerQuery) -> list[Listed]:
    found = []
    for request in build_requests.list_for(api, query.project_id):
        if query.matches(request.instance):
            found.append(_of_request(request))
    return found


def _of_request(request: build_requests.BuildRequest) -> Listed:
    volumes = [
        AttachedVolume(device.volume_id, device.delete_on_termination)
        for device in request.block_devices
        if device.volume_id is not None
    ]
    return Listed(request.instance, None, volumes)


def _select(query: ServerQuery) -> sa.Select[Any]:
    return sa.select(*(TABLE.c[name] for name in query.loaded))


def _read_cell(cell_uuid: str, database: Database, query: ServerQuery, cursor: Key | None, size: int) -> _Batch:
    dialect = database.engine.dialect.name
    statement = _select(query)
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
        statement = statement.where(_behind(query, cursor, dialect))
    statement = statement.order_by(*(_ordered(TABLE.c[key.column], key, dialect) for key in query.keys)).limit(size)
    rows = _load(cell_uuid, database, query, statement)
    end = _key(query, rows[-1].instance) if len(rows) == size else None
    return _Batch([row for row in rows if all(test.matches(row.instance) for test in tests)], end)


@cache
def _select_one(columns: tuple[str, ...]) -> sa.Select[Any]:
    return sa.select(*(TABLE.c[name] for name in columns)).where(
        TABLE.c.uuid == sa.bindparam("of_uuid"), TABLE.c.deleted.is_(False)
    )


_LISTED: sa.BindParameter[Any] = sa.bindparam("listed", expanding=True)
_TAGS = sa.select(TAGS.c.resource_id, TAGS.c.tag).where(TAGS.c.resource_id.in_(_LISTED)).order_by(TAGS.c.tag)
_VOLUMES = (
    sa.select(DEVICES.c.instance_uuid, DEVICES.c.volume_id, DEVICES.c.delete_on_termination)
    .where(DEVICES.c.instance_uuid.in_(_LISTED), DEVICES.c.volume_id.is_not(None), DEVICES.c.deleted.is_(False))
    .order_by(DEVICES.c.id)
)


def _load(
    cell_uuid: str,
    database: Database,
    query: ServerQuery,
    statement: sa.Select[Any],
    parameters: dict[str, Any] | None = None,
) -> list[Listed]:
    """Runs a statement that selects the query's columns, and reads tags and volumes if the query wants them."""
    names = query.loaded
    with database.read() as connection:
        rows = connection.execute(statement, parameters or {})
        found = [msgspec.convert(dict(zip(names, row, strict=True)), Instance) for row in rows]
        listed = {instance.uuid: Listed(instance, cell_uuid) for instance in found}
        uuids = {"listed": list(listed)}
        if listed and query.loads_tags:
            for uuid, tag in connection.execute(_TAGS, uuids):
                listed[uuid].instance.tags.append(tag)
        if listed and query.volumes:
            for uuid, volume_id, delete_on_termination in connection.execute(_VOLUMES, uuids):
                listed[uuid].volumes.append(AttachedVolume(volume_id, delete_on_termination))
    return list(listed.values())


def _key_of_marker(cells: Cells, query: ServerQuery, requests: list[Listed]) -> Key:
    for row in requests:
        if row.instance.uuid == query.marker:
            return _key(query, row.instance)
    marker = str(query.marker)
    mapped = mappings.cells_of(cells.api, [marker])
    if mapped.get(marker) is None:
        # A build request that does not fit the conditions can mark a page all the same.
        request = build_requests.find(cells.api, marker)
        if request is not None and query.project_id in (None, request.project_id):
            return _key(query, request.instance)
    else:
        database = cells.database(str(mapped[marker]))
        rows = _load("", database, query, _select(query).where(TABLE.c.uuid == marker))
        if rows and query.project_id in (None, rows[0].instance.project_id):
            return _key(query, rows[0].instance)
    raise errors.BadRequest(f"marker [{marker}] not found")


# --- the authority


def _mapped(
    api: Database, uuids: Iterable[str], project_id: str | None, started: datetime
) -> tuple[dict[str, str | None], set[str]]:
    """The cells of servers, and which servers may have changed cells since ``started``; those are in the first, too."""
    table = mappings.TABLE
    seen = sa.select(table.c.instance_uuid, table.c.cell_uuid, sa.literal(0).label("moving")).where(
        table.c.instance_uuid.in_(list(uuids))
    )
    running = [state.value for state in MoveState if state not in MOVE_ENDED]
    moved = sa.select(MOVES.c.instance_uuid).where(sa.or_(MOVES.c.state.in_(running), MOVES.c.ended_at >= started))
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
    """The rows that count, in order: of each server the one of the cell that its mapping names."""
    seen: dict[str, dict[str | None, Listed]] = {}
    for row in rows:
        seen.setdefault(row.instance.uuid, {})[row.cell_uuid] = row
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
    for row in _look_again(cells, query, {uuid: mapped[uuid] for uuid in doubtful}, seen, down):
        key = _key(query, row.instance)
        if (cursor is None or _is_after(query, key, cursor)) and not (frontier and _is_after(query, key, frontier)):
            settled.append(row)
    _sort(query, settled)
    return settled


def _look_again(
    cells: Cells,
    query: ServerQuery,
    mapped: dict[str, str | None],
    seen: dict[str, dict[str | None, Listed]],
    down: set[str],
) -> list[Listed]:
    """Reads servers in doubt in the cells they are mapped to, until their mapping is the same before and after."""
    settled: list[Listed] = []
    for attempt in range(ATTEMPTS):
        by_cell: dict[str, list[str]] = {}
        for uuid, home in mapped.items():
            if home is not None and home not in down:
                by_cell.setdefault(home, []).append(uuid)
        rows: dict[str, Listed] = {}
        for cell_uuid, uuids in by_cell.items():
            found = _load(
                cell_uuid, cells.database(cell_uuid), query, _select(query).where(TABLE.c.uuid.in_(sorted(uuids)))
            )
            rows.update({row.instance.uuid: row for row in found})
        now = mappings.cells_of(cells.api, sorted(mapped))
        moved_on: dict[str, str | None] = {}
        for uuid, home in mapped.items():
            if uuid not in now or (home is not None and home in down):
                continue
            if now[uuid] != home and attempt < ATTEMPTS - 1:
                moved_on[uuid] = now[uuid]
                continue
            copies = seen.get(uuid, {})
            row = rows.get(uuid) or next(iter(copies.values()), None)
            if row is not None and query.matches(row.instance):
                settled.append(row)
        mapped = moved_on
        if not mapped:
            break
    return settled


# --- one server


def get_server(
    cells: Cells,
    uuid: str,
    *,
    columns: frozenset[str] | None = None,
    tags: bool = True,
    volumes: bool = False,
) -> Listed:
    """A server in the cell that its mapping names, or its build request; ``columns`` None: all of them.

    A server that changes its cell between the reading of the mapping and of the row is looked up again. Raises
    ServerNotFound, and DatabaseFailed if its cell is down.
    """
    query = ServerQuery(None, 1, columns=ALL_COLUMNS if columns is None else columns, tags=tags, volumes=volumes)
    previous: str | None = ""
    for _attempt in range(ATTEMPTS):
        home = mappings.get(cells.api, uuid).cell_uuid
        if home == previous:
            break
        if home is None:
            request = build_requests.find(cells.api, uuid)
            if request is not None:
                return _of_request(request)
        else:
            rows = _load(home, cells.database(home), query, _select_one(tuple(query.loaded)), {"of_uuid": uuid})
            if rows:
                return rows[0]
        previous = home
    raise errors.ServerNotFound(uuid)
