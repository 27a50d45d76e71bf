"""Servers on no host: of which of them Causeway's records are true."""

from __future__ import annotations

from datetime import datetime

from causeway.adopt.importing import server_records
from causeway.adopt.nova import NovaCloud, narrow
from causeway.adopt.nova.database import Row
from causeway.model.states import VmState
from causeway.store.api import adoptions
from causeway.store.cell import many_servers
from causeway.store.cells import Cells
from causeway.store.database import Database


def uuids(nova: NovaCloud, api: Database, cells: Cells, *, has_all: bool) -> set[str]:
    """Those that have no host here, or in Nova's records, and of which Causeway's records are true.

    ``has_all``: the cloud is finished, so these are all. Before that Nova changes servers without a host, too: then they are
    those that were made here, and those that changed or were deleted here since their import, and that Nova left as they were.
    """
    here, there = _here(cells), _in_nova(nova)
    if has_all:
        return here | there.keys()
    known = adoptions.of_keys(api, server_records.KIND, here | there.keys())
    changed = {
        uuid
        for mapping in cells.mappings()
        for uuid, when in many_servers.changed_at(cells.database(mapping.uuid), known).items()
        if when > known[uuid].imported_at
    }
    for cell in nova.cells:
        there |= {
            uuid: rows[0] for uuid, rows in cell.database.rows_of(narrow.PLACES, "uuid", changed - there.keys()).items()
        }
    untouched = {
        uuid
        for uuid in changed & there.keys()
        if there[uuid]["host"] is None and not _is_after(there[uuid]["updated_at"], known[uuid].imported_at)
    }
    return (here - known.keys()) | untouched


def _here(cells: Cells) -> set[str]:
    return {
        uuid
        for mapping in cells.mappings()
        for uuid in many_servers.without_host(cells.database(mapping.uuid), list(VmState))
    }


def _in_nova(nova: NovaCloud) -> dict[str, Row]:
    found: dict[str, Row] = {}
    table = narrow.PLACES
    for cell in nova.cells:
        for batch in cell.database.batches(table, 500, table.c.deleted == 0, table.c.host.is_(None)):
            found |= {row["uuid"]: row for row in batch}
    return found


def _is_after(changed: datetime | None, imported_at: datetime) -> bool:
    return changed is not None and changed > imported_at


__all__ = ["uuids"]
