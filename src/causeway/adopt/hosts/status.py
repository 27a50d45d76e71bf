"""How far a whole cloud is on its way from Nova: its cells, their hosts, the servers there, and what blocks."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

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
    """``state``: None: nobody has looked at it. ``servers``: None: the cell's database does not answer."""

    host: str
    state: HostState | None
    servers: int | None
    findings: list[Finding] = field(default_factory=list)
    updated_at: str | None = None

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
    found = []
    for cell in cells.mappings(cell0=False):
        status = CellStatus(cell.name, cell.uuid, cell.disabled)
        for host in sorted(host for host, cell_uuid in mapped.items() if cell_uuid == cell.uuid):
            adopted = known.get(host)
            status.hosts.append(
                HostStatus(
                    host,
                    adopted.state if adopted is not None else None,
                    counts[cell.uuid][host] if cell.uuid in counts else None,
                    adopted.findings if adopted is not None else [],
                    adopted.updated_at.isoformat() if adopted is not None and adopted.updated_at else None,
                )
            )
        found.append(status)
    return found


def _servers(_cell: CellMapping, database: Database) -> Counter[str]:
    query = (
        sa.select(INSTANCES.c.host, sa.func.count())
        .where(INSTANCES.c.deleted.is_(False), sa.or_(INSTANCES.c.hidden.is_(None), INSTANCES.c.hidden.is_(False)))
        .group_by(INSTANCES.c.host)
    )
    with database.read() as connection:
        return Counter({host: count for host, count in connection.execute(query) if host is not None})
