"""Keeps the instance mappings' copies of servers' columns up to date: see `causeway.store.mapped_pages`.

A deleted server keeps its mapping until it is archived. Conductors mark it from time to time (`note_deleted`), so that lists skip
it. This may be repeated, or be done twice at the same time: a mapping is changed only if it still names the same cell.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from causeway import errors
from causeway.model.host import CellMapping
from causeway.store.api import mappings
from causeway.store.cell.instances import TABLE as INSTANCES
from causeway.store.cells import Cells
from causeway.store.database import Database

LOG = logging.getLogger(__name__)

TABLE = mappings.TABLE
# Mappings in one statement.
CHUNK = 500
_OWN = ("project_id", "user_id", "created_at", "deleted")


def note_deleted(cells: Cells) -> None:
    """Marks the mappings of deleted servers, except those of cells that do not answer."""
    going = sa.and_(TABLE.c.queued_for_delete == sa.true(), TABLE.c.deleted == sa.false())
    last = ""
    while True:
        query = (
            sa.select(TABLE.c.instance_uuid, TABLE.c.cell_uuid)
            .where(going, TABLE.c.instance_uuid > last, TABLE.c.cell_uuid.is_not(None))
            .order_by(TABLE.c.instance_uuid)
            .limit(CHUNK)
        )
        with cells.api.read() as connection:
            rows = connection.execute(query).all()
        if not rows:
            return
        last = rows[-1].instance_uuid
        by_cell: dict[str, list[str]] = defaultdict(list)
        for uuid, cell_uuid in rows:
            by_cell[cell_uuid].append(uuid)
        for cell_uuid, uuids in by_cell.items():
            try:
                _note(cells, cell_uuid, uuids)
            except (errors.DatabaseFailed, errors.NotFound) as failure:
                LOG.warning("%d mappings to cell %s were left: %s", len(uuids), cell_uuid, failure.message)


def correct(cells: Cells, uuid: str) -> None:
    """Copies the columns of a server's row to its mapping. Raises StateChanged if it has no row there any more."""
    cell_uuid = mappings.get(cells.api, uuid).cell_uuid
    query = sa.select(*(INSTANCES.c[name] for name in _OWN)).where(INSTANCES.c.uuid == uuid)
    rows = [] if cell_uuid is None else _read(cells, cell_uuid, query)
    changed = 0
    for row in rows:
        with cells.api.write() as connection:
            changed = connection.execute(
                TABLE.update()
                .where(TABLE.c.instance_uuid == uuid, TABLE.c.cell_uuid == cell_uuid)
                .values(dict(row._mapping))
            ).rowcount
    if not changed:
        raise errors.StateChanged("The server's mapping was changed in the meantime.")


def _note(cells: Cells, cell_uuid: str, uuids: list[str]) -> None:
    query = sa.select(INSTANCES.c.uuid).where(INSTANCES.c.uuid.in_(uuids), INSTANCES.c.deleted.is_(True))
    gone = [row.uuid for row in _read(cells, cell_uuid, query)]
    with cells.api.write() as connection:
        connection.execute(
            TABLE.update()
            .where(TABLE.c.instance_uuid.in_(gone), TABLE.c.cell_uuid == cell_uuid, TABLE.c.deleted == sa.false())
            .values(deleted=True)
        )


def _read(cells: Cells, cell_uuid: str, query: sa.Select[Any]) -> Sequence[sa.Row[Any]]:
    """Reads rows of a cell. Raises DatabaseFailed, at once if the cell hung just before."""

    def ask(_cell: CellMapping, database: Database) -> Sequence[sa.Row[Any]]:
        with database.read() as connection:
            return connection.execute(query).all()

    answers = cells.ask([cell_uuid], ask)
    if answers.down:
        raise errors.DatabaseFailed(f"The database of {answers.down[0].name} does not answer; try again later.")
    return answers.by_cell[cell_uuid]
