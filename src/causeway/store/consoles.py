"""Finds whether the servers of open consoles, and of consoles that can be opened, are still where they were."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from typing import Any

import sqlalchemy as sa

from causeway.model.console import ConsoleStanding, ConsoleToken, Ending
from causeway.model.host import CellMapping
from causeway.store.api import mappings
from causeway.store.cell.instances import TABLE as INSTANCES
from causeway.store.cells import Cells
from causeway.store.database import Database, parts


def standings(cells: Cells, tokens: Collection[ConsoleToken]) -> dict[str, ConsoleStanding]:
    """The standing of each token's console, by the token's hash, without those of cells that do not answer.

    Makes one statement in all, and one for each cell. Raises DatabaseFailed if the API database does not answer.
    """
    homes = mappings.cells_of(cells.api, sorted({token.instance_uuid for token in tokens}))
    found: dict[str, ConsoleStanding] = {}
    to_ask: dict[str, list[ConsoleToken]] = defaultdict(list)
    for token in tokens:
        if token.instance_uuid not in homes:
            found[token.token_hash] = ConsoleStanding(Ending.DELETED)
        elif homes[token.instance_uuid] != token.cell_uuid:
            found[token.token_hash] = ConsoleStanding(Ending.MOVED)
        else:
            to_ask[token.cell_uuid].append(token)
    if not to_ask:
        return found

    def ask(cell: CellMapping, database: Database) -> dict[str, ConsoleStanding]:
        return _in_cell(database, to_ask[cell.uuid])

    for answered in cells.ask(to_ask, ask, without_failed=True).by_cell.values():
        found |= answered
    return found


def _in_cell(database: Database, tokens: list[ConsoleToken]) -> dict[str, ConsoleStanding]:
    columns = INSTANCES.c
    rows: dict[str, sa.Row[Any]] = {}
    with database.read() as connection:
        for part in parts(sorted({token.instance_uuid for token in tokens})):
            query = sa.select(columns.uuid, columns.host, columns.task_state).where(
                columns.uuid.in_(part), columns.deleted.is_(False)
            )
            rows |= {row.uuid: row for row in connection.execute(query)}
    found = {}
    for token in tokens:
        row = rows.get(token.instance_uuid)
        if row is None:
            found[token.token_hash] = ConsoleStanding(Ending.DELETED)
        elif row.host != token.compute_host:
            found[token.token_hash] = ConsoleStanding(Ending.MOVED)
        else:
            found[token.token_hash] = ConsoleStanding(None, is_busy=row.task_state is not None)
    return found
