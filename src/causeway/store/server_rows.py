"""Rows of servers as lists read them: what is asked for, in which order, and how rows are read in a cell.

`causeway.store.listing` says how they become pages.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import msgspec
import sqlalchemy as sa

from causeway.model.host import CellMapping
from causeway.model.instance import Instance
from causeway.store.api import build_requests, mappings
from causeway.store.cell import block_devices, instances
from causeway.store.cell.instances import TABLE, TAGS
from causeway.store.cells import Cells
from causeway.store.conditions import Condition, value_of
from causeway.store.database import Database

DEVICES = block_devices.TABLE

# How often a server that goes on moving is looked for. Each time takes a whole move between two reads.
ATTEMPTS = 4
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
    # The caller tells of servers in cells that do not answer, wherever they come in the order.
    tells_of_down_cells: bool = False

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


# --- order


def key_of(query: ServerQuery, instance: Instance) -> Key:
    return tuple(value_of(instance, key.column) for key in query.keys)


def sort_rows(query: ServerQuery, rows: list[Listed]) -> None:
    for key in reversed(query.keys):
        rows.sort(key=lambda row: comparable(value_of(row.instance, key.column)), reverse=key.descending)


def comparable(value: Any) -> tuple[bool, Any]:
    return (False, 0) if value is None else (True, value)


def is_after(query: ServerQuery, one: Key, other: Key) -> bool:
    """Whether a key comes behind another one in the order."""
    for key, mine, theirs in zip(query.keys, one, other, strict=True):
        if mine != theirs:
            return (comparable(mine) < comparable(theirs)) == key.descending
    return False


def after(query: ServerQuery, row: Listed, cursor: Key | None) -> bool:
    return cursor is None or is_after(query, key_of(query, row.instance), cursor)


def ordered(column: sa.ColumnElement[Any], key: SortKey, dialect: str) -> sa.ColumnElement[Any]:
    way = collated(column, dialect).desc() if key.descending else collated(column, dialect).asc()
    # What can't be null is left as it is: an index has the order then.
    if dialect == "postgresql" and getattr(column, "nullable", True):
        return way.nulls_last() if key.descending else way.nulls_first()
    return way


def collated(column: sa.ColumnElement[Any], dialect: str) -> sa.ColumnElement[Any]:
    """Strings in the order of their code points, as we compare them ourselves, whatever the database is set to."""
    if isinstance(column.type, sa.String) and dialect in _COLLATIONS:
        return column.collate(_COLLATIONS[dialect])
    return column


def behind(
    query: ServerQuery, cursor: Key, dialect: str, columns: Mapping[str, sa.Column[Any]] | None = None
) -> sa.ColumnElement[bool]:
    """SQL: rows behind the cursor; ``columns`` are those of the query's keys (None: of the instances)."""
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


def select_rows(query: ServerQuery) -> sa.Select[Any]:
    return sa.select(*(TABLE.c[name] for name in query.loaded))


def of_request(request: build_requests.BuildRequest) -> Listed:
    volumes = [
        AttachedVolume(device.volume_id, device.delete_on_termination)
        for device in request.block_devices
        if device.volume_id is not None
    ]
    return Listed(request.instance, None, volumes)


@cache
def select_one(columns: tuple[str, ...]) -> sa.Select[Any]:
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


def load(
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


def look_again(
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
            found = load(
                cell_uuid, cells.database(cell_uuid), query, select_rows(query).where(TABLE.c.uuid.in_(sorted(uuids)))
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
