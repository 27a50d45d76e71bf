"""Where the scheduler's knowledge of hosts comes from: the API database and the cells' databases."""

from __future__ import annotations

from causeway.model.host import DISK_WORK, FAILED_BUILDS, Aggregate, CellMapping
from causeway.scheduler.host_state import HostRecord
from causeway.store import group_places, own_nodes
from causeway.store.api import aggregates, groups
from causeway.store.cell import hosts
from causeway.store.cells import Cells
from causeway.store.database import Database


class CellsSource:
    """A `HostSource` that reads the databases; cells that don't answer have no hosts.

    A host that reports the node or the name of another host is left out (`own_nodes`).
    """

    def __init__(self, cells: Cells) -> None:
        self._cells = cells
        self._silent: list[str] = []
        # As of the last look at all hosts. It decides about each of them until the next one.
        self._own: own_nodes.OwnNodes | None = None

    def host_states(self, provider_uuids: set[str] | None) -> list[HostRecord]:
        def ask(cell: CellMapping, database: Database) -> list[HostRecord]:
            if provider_uuids is None:
                nodes = hosts.list_nodes(database)
                services = hosts.list_services(database, binary="nova-compute")
            else:
                nodes = hosts.nodes_with(database, provider_uuids)
                services = hosts.compute_services_of(database, {node.host for node in nodes})
            by_host = {service.host: service for service in services}
            return [
                HostRecord(
                    cell.uuid,
                    cell.name,
                    node,
                    by_host[node.host],
                    cell_disabled=cell.disabled,
                    num_io_ops=node.capabilities.get(DISK_WORK, 0),
                    failed_builds=node.capabilities.get(FAILED_BUILDS, 0),
                )
                for node in nodes
                if node.host in by_host
            ]

        self._cells.refresh()
        if provider_uuids is None or self._own is None:
            self._own = own_nodes.of_all(self._cells.api)
        own = self._own
        answers = self._cells.ask_all(ask, cell0=False, without_failed=True)
        self._silent = [cell.name for cell in answers.down]
        found = (record for records in answers.by_cell.values() for record in records)
        return own.among(found, lambda record: (record.cell_uuid, record.node))

    def silent_cells(self) -> list[str]:
        return list(self._silent)

    def aggregates(self) -> list[Aggregate]:
        return aggregates.list_all(self._cells.api)

    def group_members(self, group_uuid: str) -> set[str]:
        return set(groups.get(self._cells.api, group_uuid).members)

    def group_hosts(self, members: set[str]) -> dict[str, set[str]]:
        return group_places.look_up(self._cells, members).by_host()

    def instance_hosts(self, instance_uuids: set[str]) -> dict[str, str]:
        places = group_places.look_up(self._cells, instance_uuids).hosts
        return {uuid: hosts[0] for uuid, hosts in places.items() if hosts}
