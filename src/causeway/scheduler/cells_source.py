"""Where the scheduler's knowledge of hosts comes from: the API database and the cells' databases."""

from __future__ import annotations

from causeway.model.host import Aggregate, CellMapping
from causeway.scheduler.host_state import HostRecord
from causeway.store.api import aggregates, groups
from causeway.store.cell import hosts, instances
from causeway.store.cells import Cells
from causeway.store.database import Database


class CellsSource:
    """A `HostSource` that reads the databases; cells that don't answer have no hosts."""

    def __init__(self, cells: Cells) -> None:
        self._cells = cells
        self._silent: list[str] = []

    def host_states(self, provider_uuids: set[str] | None) -> list[HostRecord]:
        def ask(cell: CellMapping, database: Database) -> list[HostRecord]:
            services = {s.host: s for s in hosts.list_services(database, binary="nova-compute")}
            return [
                HostRecord(cell.uuid, cell.name, node, services[node.host], cell_disabled=cell.disabled)
                for node in hosts.list_nodes(database)
                if node.host in services and (provider_uuids is None or node.uuid in provider_uuids)
            ]

        self._cells.refresh()
        answers = self._cells.ask_all(ask, cell0=False)
        self._silent = [cell.name for cell in answers.down]
        return [record for records in answers.by_cell.values() for record in records]

    def silent_cells(self) -> list[str]:
        return list(self._silent)

    def aggregates(self) -> list[Aggregate]:
        return aggregates.list_all(self._cells.api)

    def group_hosts(self, group_uuid: str) -> dict[str, int]:
        members = set(groups.get(self._cells.api, group_uuid).members)
        counted: dict[str, int] = {}
        for _uuid, places in self._places(members).items():
            for host in places:
                counted[host] = counted.get(host, 0) + 1
        return counted

    def instance_hosts(self, instance_uuids: set[str]) -> dict[str, str]:
        return {uuid: places[0] for uuid, places in self._places(instance_uuids).items() if places}

    def _places(self, uuids: set[str]) -> dict[str, list[str]]:
        """server -> the hosts that it takes room on, its own first; two while it is being moved."""
        if not uuids:
            return {}

        def ask(_cell: CellMapping, database: Database) -> dict[str, list[str]]:
            query = instances.SELECT.where(instances.TABLE.c.uuid.in_(uuids), instances.TABLE.c.deleted.is_(False))
            found: dict[str, list[str]] = {}
            for instance in instances.select(database, query, with_tags=False):
                moving = instance.migration_context
                ends = [moving.source_host, moving.dest_host] if moving is not None else []
                if not instance.hidden:
                    found[instance.uuid] = list(dict.fromkeys(h for h in [instance.host, *ends] if h))
            return found

        answers = self._cells.ask_all(ask, cell0=False)
        return {uuid: hosts for by_server in answers.by_cell.values() for uuid, hosts in by_server.items()}
