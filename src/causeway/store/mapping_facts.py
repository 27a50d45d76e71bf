"""Keeps the instance mappings' copies of servers' columns up to date: see `causeway.store.mapped_pages`.

- Mappings of an older version do not say whether their servers are deleted. `fill` looks that up, and corrects the other
  columns by which lists are sorted and filtered. As long as one such mapping is left, lists ask all cells.
- A deleted server keeps its mapping until it is archived. `note_deleted` marks it, so that lists skip it.

Conductors do both from time to time, and ``causeway manage db sync`` does the first. They may be repeated, or run at the same
time: each change is made only if the mapping is unchanged and names the same cell.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from causeway import errors
from causeway.model.host import CellMapping
from causeway.store.api import build_requests, mappings
from causeway.store.cell.instances import TABLE as INSTANCES
from causeway.store.cells import Cells
from causeway.store.database import Database

LOG = logging.getLogger(__name__)

TABLE = mappings.TABLE
# Mappings in one statement.
CHUNK = 500
_OWN = ("project_id", "user_id", "created_at", "deleted")


def keep(cells: Cells) -> None:
    """Does both once."""
    fill(cells)
    note_deleted(cells)


def fill(cells: Cells) -> int:
    """Completes the mappings of an older version, except those of cells that do not answer. Returns their number."""
    return _go_through(cells, TABLE.c.deleted.is_(None), _fill)


def note_deleted(cells: Cells) -> int:
    """Marks the mappings of deleted servers. Returns their number."""
    going = sa.and_(TABLE.c.queued_for_delete == sa.true(), TABLE.c.deleted == sa.false())
    return _go_through(cells, going, _note)


def _go_through(cells: Cells, which: sa.ColumnElement[bool], change: Any) -> int:
    changed, last = 0, ""
    while True:
        query = (
            sa.select(TABLE.c.instance_uuid, TABLE.c.cell_uuid)
            .where(which, TABLE.c.instance_uuid > last)
            .order_by(TABLE.c.instance_uuid)
            .limit(CHUNK)
        )
        with cells.api.read() as connection:
            rows = connection.execute(query).all()
        if not rows:
            return changed
        last = rows[-1].instance_uuid
        by_cell: dict[str | None, list[str]] = defaultdict(list)
        for uuid, cell_uuid in rows:
            by_cell[cell_uuid].append(uuid)
        for cell_uuid, uuids in by_cell.items():
            try:
                changed += change(cells, cell_uuid, uuids)
            except (errors.DatabaseFailed, errors.NotFound) as failure:
                LOG.warning("%d mappings to cell %s were left: %s", len(uuids), cell_uuid, failure.message)


def _fill(cells: Cells, cell_uuid: str | None, uuids: list[str]) -> int:
    if cell_uuid is None:
        known = [
            {"of_uuid": uuid, "deleted": False} | {name: getattr(request.instance, name) for name in _OWN[:3]}
            for uuid, request in build_requests.find_all(cells.api, uuids).items()
        ]
    else:
        own = (INSTANCES.c[name] for name in _OWN)
        rows = _read(cells, cell_uuid, sa.select(INSTANCES.c.uuid, *own).where(INSTANCES.c.uuid.in_(uuids)))
        known = [{"of_uuid": row.uuid} | {name: getattr(row, name) for name in _OWN} for row in rows]
        # A mapping without a row is not a server. No list shows it, whatever its columns are.
        lost = set(uuids) - {str(values["of_uuid"]) for values in known}
        _change(cells.api, TABLE.c.deleted.is_(None), cell_uuid, {"deleted": False}, [{"of_uuid": one} for one in lost])
    known = [values for values in known if values["created_at"] is not None]
    taken: dict[str, Any] = {name: sa.bindparam(f"own_{name}") for name in _OWN}
    parameters = [{"of_uuid": one["of_uuid"]} | {f"own_{name}": one[name] for name in _OWN} for one in known]
    return _change(cells.api, TABLE.c.deleted.is_(None), cell_uuid, taken, parameters)


def _note(cells: Cells, cell_uuid: str | None, uuids: list[str]) -> int:
    if cell_uuid is None:
        return 0
    query = sa.select(INSTANCES.c.uuid).where(INSTANCES.c.uuid.in_(uuids), INSTANCES.c.deleted.is_(True))
    gone = [{"of_uuid": row.uuid} for row in _read(cells, cell_uuid, query)]
    return _change(cells.api, TABLE.c.deleted == sa.false(), cell_uuid, {"deleted": True}, gone)


def _read(cells: Cells, cell_uuid: str, query: sa.Select[Any]) -> Sequence[sa.Row[Any]]:
    """Reads rows of a cell. Raises DatabaseFailed, at once if the cell hung just before."""

    def ask(_cell: CellMapping, database: Database) -> Sequence[sa.Row[Any]]:
        with database.read() as connection:
            return connection.execute(query).all()

    answers = cells.ask([cell_uuid], ask)
    if answers.down:
        raise errors.DatabaseFailed(f"The database of {answers.down[0].name} does not answer; try again later.")
    return answers.by_cell[cell_uuid]


def _change(
    api: Database,
    still: sa.ColumnElement[bool],
    cell_uuid: str | None,
    values: dict[str, Any],
    parameters: list[dict[str, Any]],
) -> int:
    """Changes mappings, by their uuids, if they are unchanged and name the same cell."""
    if not parameters:
        return 0
    there = TABLE.c.cell_uuid.is_(None) if cell_uuid is None else TABLE.c.cell_uuid == cell_uuid
    statement = TABLE.update().where(TABLE.c.instance_uuid == sa.bindparam("of_uuid"), there, still).values(values)
    with api.write() as connection:
        connection.execute(statement, parameters)
    return len(parameters)
