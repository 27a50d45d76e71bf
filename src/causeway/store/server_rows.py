"""Rows of servers for lists: queries, their order, and how rows are read in a cell.

`causeway.store.listing` makes pages of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import sqlalchemy as sa

from causeway.model.host import CellMapping
from causeway.store.api import build_requests, mappings
from causeway.store.cell import block_devices, instances
from causeway.store.cell.instances import TABLE, TAGS
from causeway.store.cells import Cells
from causeway.store.conditions import Condition
from causeway.store.database import Database
from causeway.store.listed import JSON_COLUMNS, AttachedVolume, Listed

DEVICES = block_devices.TABLE

# How often a server that keeps moving is read again. Each repetition takes a whole move between two reads.
ATTEMPTS = 4
# Columns that `Listed.instance` needs.
_NEEDED = frozenset({"uuid", "project_id", "user_id", "display_name", "flavor", "created_at"})
_COLLATIONS = {"postgresql": "C", "mysql": "utf8mb4_bin", "mariadb": "utf8mb4_bin"}


@dataclass(frozen=True)
class SortKey:
    """A column of the instances to sort by. Values that are not set are the smallest."""

    column: str
    descending: bool = False


ALL_COLUMNS = frozenset(name for name in instances.MAPPER.fields if name != "hidden")
NEWEST_FIRST = (SortKey("created_at", descending=True),)


@dataclass
class ServerQuery:
    """A query for servers. ``project_id`` None: of all projects. ``columns``: fields of the instances that the caller shows."""

    project_id: str | None
    limit: int
    conditions: list[Condition] = field(default_factory=list)
    sort: tuple[SortKey, ...] = NEWEST_FIRST
    marker: str | None = None
    columns: frozenset[str] = frozenset()
    tags: bool = False
    volumes: bool = False
    # The caller lists servers of cells that do not answer, at any place in the order.
    lists_down_cells: bool = False

    @property
    def keys(self) -> tuple[SortKey, ...]:
        return (*self.sort, SortKey("uuid"))

    @cached_property
    def loaded(self) -> tuple[str, ...]:
        """The columns to read."""
        names = set(self.columns | _NEEDED).union(*(condition.columns for condition in self.conditions))
        names.update(key.column for key in self.sort)
        return tuple(sorted(names))

    @property
    def loads_tags(self) -> bool:
        return self.tags or any(c.needs_tags for c in self.conditions)

    def matches(self, server: Listed) -> bool:
        if self.project_id is not None and server.values["project_id"] != self.project_id:
            return False
        return all(condition.matches(server) for condition in self.conditions)


@dataclass
class Page:
    """``more``: there are servers behind the last one. ``down``: cells that did not answer, whose servers are missing."""

    servers: list[Listed]
    more: bool
    down: list[CellMapping]


Key = tuple[Any, ...]


# --- order


def key_of(query: ServerQuery, server: Listed) -> Key:
    values = server.values
    return tuple(values[key.column] for key in query.keys)


def sort_rows(query: ServerQuery, rows: list[Listed]) -> None:
    for key in reversed(query.keys):
        rows.sort(key=lambda row: comparable(row.values[key.column]), reverse=key.descending)


def comparable(value: Any) -> tuple[bool, Any]:
    return (False, 0) if value is None else (True, value)


def is_after(query: ServerQuery, one: Key, other: Key) -> bool:
    """Whether a key is behind another one in the order."""
    for key, mine, theirs in zip(query.keys, one, other, strict=True):
        if mine != theirs:
            return (comparable(mine) < comparable(theirs)) == key.descending
    return False


def after(query: ServerQuery, row: Listed, cursor: Key | None) -> bool:
    return cursor is None or is_after(query, key_of(query, row), cursor)


def ordered(column: sa.ColumnElement[Any], key: SortKey, dialect: str) -> sa.ColumnElement[Any]:
    way = collated(column, dialect).desc() if key.descending else collated(column, dialect).asc()
    # A column that can't be null stays unchanged, so that an index has the order.
    if dialect == "postgresql" and getattr(column, "nullable", True):
        return way.nulls_last() if key.descending else way.nulls_first()
    return way


def collated(column: sa.ColumnElement[Any], dialect: str) -> sa.ColumnElement[Any]:
    """Orders strings by their code points, as our own comparison does, whatever the database's collation is."""
    if isinstance(column.type, sa.String) and dialect in _COLLATIONS:
        return column.collate(_COLLATIONS[dialect])
    return column


def behind(
    query: ServerQuery, cursor: Key, dialect: str, columns: Mapping[str, sa.Column[Any]] | None = None
) -> sa.ColumnElement[bool]:
    """SQL for rows behind the cursor. ``columns``: for the query's keys (None: those of the instances)."""
    columns = dict(TABLE.c) if columns is None else columns
    ways: list[sa.ColumnElement[bool]] = []
    same: list[sa.ColumnElement[bool]] = []
    for key, value in zip(query.keys, cursor, strict=True):
        column = collated(columns[key.column], dialect)
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

# Neither tags (the Compute API refuses this) nor ids of volumes have a comma.
_BETWEEN, _WITHIN = ",", ":"
_TAGS = (
    sa.select(sa.func.aggregate_strings(TAGS.c.tag, _BETWEEN))
    .where(TAGS.c.resource_id == TABLE.c.uuid)
    .correlate(TABLE)
    .scalar_subquery()
)
_VOLUMES = (
    sa.select(
        sa.func.aggregate_strings(
            sa.cast(DEVICES.c.id, sa.String(20))
            + sa.case((DEVICES.c.delete_on_termination.is_(True), ":1:"), else_=":0:")
            + DEVICES.c.volume_id,
            _BETWEEN,
        )
    )
    .where(DEVICES.c.instance_uuid == TABLE.c.uuid, DEVICES.c.volume_id.is_not(None), DEVICES.c.deleted.is_(False))
    .correlate(TABLE)
    .scalar_subquery()
)
_LISTED: sa.BindParameter[Any] = sa.bindparam("listed", expanding=True)


def select_rows(query: ServerQuery) -> sa.Select[Any]:
    """Selects the query's columns, with tags and volumes if it wants them, in one statement that `load` can read."""
    return _select(query.loaded, query.loads_tags, query.volumes)


def select_some(query: ServerQuery) -> sa.Select[Any]:
    """The same, for the servers in the parameter ``listed``."""
    return _select_some(query.loaded, query.loads_tags, query.volumes)


def select_one(query: ServerQuery) -> sa.Select[Any]:
    """The same, for the server in the parameter ``of_uuid`` unless it was deleted."""
    return _select_one(query.loaded, query.loads_tags, query.volumes)


# Cached, since SQLAlchemy needs longer to make a statement than SQLite to run it.
@lru_cache(256)
def _select(columns: tuple[str, ...], tags: bool, volumes: bool) -> sa.Select[Any]:
    chosen = (sa.cast(TABLE.c[name], sa.Text) if name in JSON_COLUMNS else TABLE.c[name] for name in columns)
    return sa.select(*chosen, *((_TAGS,) if tags else ()), *((_VOLUMES,) if volumes else ()))


@lru_cache(256)
def _select_some(columns: tuple[str, ...], tags: bool, volumes: bool) -> sa.Select[Any]:
    return _select(columns, tags, volumes).where(TABLE.c.uuid.in_(_LISTED))


@lru_cache(256)
def _select_one(columns: tuple[str, ...], tags: bool, volumes: bool) -> sa.Select[Any]:
    return _select(columns, tags, volumes).where(TABLE.c.uuid == sa.bindparam("of_uuid"), TABLE.c.deleted.is_(False))


def of_request(request: build_requests.BuildRequest) -> Listed:
    volumes = [
        AttachedVolume(device.volume_id, device.delete_on_termination)
        for device in request.block_devices
        if device.volume_id is not None
    ]
    return Listed.of(request.instance, None, volumes)


def load(
    cell_uuid: str,
    database: Database,
    query: ServerQuery,
    statement: sa.Select[Any],
    parameters: dict[str, Any] | None = None,
) -> list[Listed]:
    """Executes a statement that one of the functions above made for this query."""
    names, tags, volumes = query.loaded, query.loads_tags, query.volumes
    with database.read() as connection:
        rows = connection.execute(statement, parameters or {}).all()
    found = []
    for row in rows:
        listed = Listed(dict(zip(names, row, strict=False)), cell_uuid)
        if tags and row[len(names)]:
            listed.tags = sorted(row[len(names)].split(_BETWEEN))
        if volumes and row[-1]:
            listed.volumes = _volumes(row[-1])
        found.append(listed)
    return found


def _volumes(text: str) -> list[AttachedVolume]:
    """The volumes in the order in which they were attached."""
    found = [one.split(_WITHIN, 2) for one in text.split(_BETWEEN)]
    return [
        AttachedVolume(volume_id, gone == "1") for _id, gone, volume_id in sorted(found, key=lambda one: int(one[0]))
    ]


def look_again(
    cells: Cells,
    query: ServerQuery,
    mapped: dict[str, str | None],
    seen: dict[str, dict[str | None, Listed]],
    down: set[str],
) -> list[Listed]:
    """Reads servers in doubt in the cells that they are mapped to, until their mapping is the same before and after."""
    settled: list[Listed] = []
    for attempt in range(ATTEMPTS):
        by_cell: dict[str, list[str]] = {}
        for uuid, home in mapped.items():
            if home is not None and home not in down:
                by_cell.setdefault(home, []).append(uuid)
        rows: dict[str, Listed] = {}
        for cell_uuid, uuids in by_cell.items():
            found = load(cell_uuid, cells.database(cell_uuid), query, select_some(query), {"listed": sorted(uuids)})
            rows.update({row.uuid: row for row in found})
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
            if row is not None and query.matches(row):
                settled.append(row)
        mapped = moved_on
        if not mapped:
            break
    return settled
