"""How far a whole cloud is on its way from Nova: its cells, their hosts, the servers there, and what blocks.

Only reads: `causeway.adopt` imports records and takes hosts.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime

import sqlalchemy as sa

from causeway.model.adoption import Finding, HostState
from causeway.model.host import CellMapping
from causeway.store.api import adopted_hosts
from causeway.store.api import cells as cell_records
from causeway.store.cell.instances import TABLE as INSTANCES
from causeway.store.cells import Cells
from causeway.store.database import Database


@dataclass
class HostStatus:
    """``state``: None: it was not imported. ``servers``: None: the cell's database does not answer."""

    host: str
    state: HostState | None
    servers: int | None
    findings: list[Finding] = field(default_factory=list)
    updated_at: datetime | None = None

    @property
    def blocking(self) -> list[Finding]:
        """What stands in the way; of a host that was taken: what is wrong with its compute service."""
        return [finding for finding in self.findings if finding.blocks]


@dataclass
class CellStatus:
    name: str
    uuid: str
    is_disabled: bool
    hosts: list[HostStatus] = field(default_factory=list)


def read(cells: Cells) -> list[CellStatus]:
    """All cells but cell0, and all their hosts. A cell that does not answer does not delay the others."""
    known = {adopted.host: adopted for adopted in adopted_hosts.all_hosts(cells.api)}
    mapped = cell_records.hosts(cells.api)
    counts = cells.ask_all(_servers, cell0=False, without_failed=True).by_cell
    found = {cell.uuid: CellStatus(cell.name, cell.uuid, cell.disabled) for cell in cells.mappings(cell0=False)}
    for host, cell_uuid in sorted(mapped.items()):
        if cell_uuid not in found:
            continue
        status = HostStatus(host, None, counts[cell_uuid][host] if cell_uuid in counts else None)
        if host in known:
            status.state, status.findings = known[host].state, known[host].findings
            status.updated_at = known[host].updated_at
        found[cell_uuid].hosts.append(status)
    return list(found.values())


def _servers(_cell: CellMapping, database: Database) -> Counter[str]:
    query = (
        sa.select(INSTANCES.c.host, sa.func.count())
        .where(INSTANCES.c.deleted.is_(False), sa.or_(INSTANCES.c.hidden.is_(None), INSTANCES.c.hidden.is_(False)))
        .group_by(INSTANCES.c.host)
    )
    with database.read() as connection:
        return Counter({host: count for host, count in connection.execute(query) if host is not None})
