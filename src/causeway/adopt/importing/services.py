"""Records of compute services: so that those who were disabled or forced down in Nova are so here."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import sqlalchemy as sa

from causeway.adopt.importing.digests import digest_of
from causeway.adopt.importing.report import ImportReport
from causeway.adopt.nova import NovaCloud, tables
from causeway.adopt.nova.database import Row
from causeway.model import versions
from causeway.store.api import adopted_hosts, adoptions
from causeway.store.api.adoptions import Adoption
from causeway.store.cell.hosts import SERVICES
from causeway.store.cells import Cells
from causeway.store.database import Database, utcnow

_KIND, _BINARY = "service", "nova-compute"
_SAME = ("uuid", "host", "binary", "topic", "disabled_reason", "created_at")


def import_services(nova: NovaCloud, api: Database, cells: Cells, report: ImportReport, owned: Collection[str]) -> None:
    """Imports the records of nova-compute of all hosts that are not Causeway's already. They were never seen up here."""
    counts, now = report.of(_KIND), utcnow()
    seen: set[str] = set()
    for cell in nova.cells:
        services = tables.SERVICES
        rows = cell.database.rows(services, services.c.deleted == 0, services.c.binary == _BINARY)
        rows = [row for row in rows if row["host"] not in owned and row["uuid"] is not None]
        known = adoptions.of_keys(api, _KIND, [row["uuid"] for row in rows])
        seen.update(row["uuid"] for row in rows)
        for row in rows:
            record = _record(row)
            digest = digest_of(record)
            counts.add(digest)
            if row["uuid"] in known and known[row["uuid"]].digest == digest:
                continue
            with api.write() as connection:
                if adopted_hosts.hold_in(connection, [row["host"]]):
                    continue
                with cells.database(cell.uuid).write() as in_cell:
                    _replace(in_cell, record)
                adoptions.save_in(connection, [Adoption(_KIND, row["uuid"], digest, now, row["id"], cell.uuid)])
            counts.written += 1
    for batch in adoptions.batches(api, _KIND, 500):
        for each in batch:
            if each.key not in seen:
                counts.deleted += _delete(api, cells, each, owned)


def _record(row: Row) -> dict[str, Any]:
    return {name: row[name] for name in _SAME} | {
        "disabled": bool(row["disabled"]),
        "forced_down": bool(row["forced_down"]),
    }


def _replace(connection: sa.Connection, record: dict[str, Any]) -> None:
    same = sa.and_(SERVICES.c.host == record["host"], SERVICES.c.binary == record["binary"])
    connection.execute(SERVICES.delete().where(sa.or_(SERVICES.c.uuid == record["uuid"], same)))
    made = record["created_at"] or utcnow()
    connection.execute(
        SERVICES.insert(), record | {"version": versions.SERVICE, "last_seen_up": None, "created_at": made}
    )


def _delete(api: Database, cells: Cells, gone: Adoption, owned: Collection[str]) -> int:
    """Returns how many were deleted."""
    if gone.cell_uuid is None:
        return 0
    with cells.database(gone.cell_uuid).write() as connection:
        which = sa.and_(SERVICES.c.uuid == gone.key, SERVICES.c.host.not_in(list(owned)))
        if not connection.execute(SERVICES.delete().where(which)).rowcount:
            return 0
    with api.write() as connection:
        adoptions.delete_in(connection, _KIND, [gone.key])
    return 1
