"""Where the members of server groups are, in every cell."""

from __future__ import annotations

from dataclasses import dataclass, field

from causeway.model.host import CellMapping
from causeway.store.api import mappings
from causeway.store.cell import instances
from causeway.store.cells import Cells
from causeway.store.database import Database, parts


@dataclass
class Places:
    """server -> the hosts on which it counts, its own first; two while it is being moved.

    ``unknown``: servers whose cells do not answer.
    """

    hosts: dict[str, list[str]] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)

    def by_host(self) -> dict[str, set[str]]:
        """host -> the servers that count there."""
        found: dict[str, set[str]] = {}
        for uuid, places in self.hosts.items():
            for host in places:
                found.setdefault(host, set()).add(uuid)
        return found


def look_up(cells: Cells, uuids: set[str]) -> Places:
    """Asks all cells at once. Hidden copies do not count, because the visible record names both hosts."""
    if not uuids:
        return Places()

    def ask(_cell: CellMapping, database: Database) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for part in parts(sorted(uuids)):
            query = instances.SELECT.where(instances.TABLE.c.uuid.in_(part), instances.TABLE.c.deleted.is_(False))
            for instance in instances.select(database, query, with_tags=False):
                moving = instance.migration_context
                ends = [moving.source_host, moving.dest_host] if moving is not None else []
                if not instance.hidden:
                    found[instance.uuid] = list(dict.fromkeys(h for h in [instance.host, *ends] if h))
        return found

    answers = cells.ask_all(ask, cell0=False, without_failed=True)
    places = Places({uuid: hosts for by_server in answers.by_cell.values() for uuid, hosts in by_server.items()})
    silent = {cell.uuid for cell in answers.down}
    if silent:
        mapped = mappings.cells_of(cells.api, sorted(uuids))
        places.unknown = {uuid for uuid in uuids if mapped.get(uuid) in silent and uuid not in places.hosts}
    return places
