"""The end of taking over: every host is Causeway's, its cells take servers, users are sent to its API."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from causeway.adopt.importing.report import ImportReport
from causeway.clients.catalog import Endpoint
from causeway.store.api import adopted_hosts, adoptions
from causeway.store.api import cells as cell_records
from causeway.store.cells import Cells
from causeway.store.database import Database


@dataclass
class Remaining:
    """What is still to be done before the cloud is Causeway's. Empty: nothing."""

    hosts: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    endpoints: list[str] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        return not (self.hosts or self.left_out or self.endpoints)


def remaining(
    cells: Cells, report: ImportReport, endpoints: Sequence[Endpoint], api_url: str, without: Collection[str]
) -> Remaining:
    """``report``: of the last import. ``without``: hosts that stay Nova's, such as dead ones."""
    owned = adopted_hosts.owned(cells.api)
    hosts = sorted(set(cell_records.hosts(cells.api)) - owned - set(without))
    left_out = [
        f"{each.kind} {each.key} ({each.name}): {each.why}" for each in report.left_out if each.kind == "server"
    ]
    elsewhere = [
        f"{each.interface} of {each.region or 'no region'}: {each.url}"
        for each in endpoints
        if not each.url.rstrip("/").startswith(api_url.rstrip("/"))
    ]
    return Remaining(hosts, left_out, elsewhere)


def enable_cells(cells: Cells, uuids: Collection[str]) -> list[str]:
    """Lets the scheduler choose hosts of these cells. Returns the names of those that it could not choose of before."""
    found = [cell for cell in cells.mappings(cell0=False) if cell.uuid in uuids and cell.disabled]
    for cell in found:
        cell_records.save_cell(cells.api, replace(cell, disabled=False))
    cells.refresh()
    return [cell.name for cell in found]


def end_for_good(api: Database) -> None:
    """Deletes all that the way back needs here. Nothing of Nova's is touched."""
    with api.write() as connection:
        connection.execute(adoptions.TABLE.delete())
        connection.execute(adopted_hosts.TABLE.delete())


__all__ = ["Remaining", "enable_cells", "end_for_good", "remaining"]
