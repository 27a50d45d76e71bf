"""Reads what Causeway's databases say of a host that is to be taken over."""

from __future__ import annotations

from collections import Counter

from causeway import errors
from causeway.adopt.hosts.recorded import RecordedHost, RecordedServer
from causeway.model.host import CellMapping
from causeway.store.api import cells as cell_records
from causeway.store.cell import block_devices, hosts, instances
from causeway.store.cells import Cells
from causeway.store.database import Database


def cell_of(cells: Cells, host: str) -> CellMapping:
    """Raises NotFound if the host is in no cell: Nova's records were not imported."""
    return cells.mapping(cell_records.cell_of_host(cells.api, host))


def hosts_of(cells: Cells, named: str) -> list[str]:
    """The hosts of a cell, by its name or uuid. Raises NotFound."""
    found = [cell for cell in cells.mappings(cell0=False) if named in (cell.name, cell.uuid)]
    if not found:
        raise errors.NotFound(f"There is no cell {named}.")
    return sorted(host for host, cell_uuid in cell_records.hosts(cells.api).items() if cell_uuid == found[0].uuid)


def read(api: Database, cell: Database, host: str) -> RecordedHost:
    """``cell``: the database of the host's cell."""
    mapping = cell_records.find_host(api, host)
    nodes = hosts.list_nodes(cell, host=host)
    node = nodes[0] if nodes else None
    servers = [
        RecordedServer(instance, block_devices.of_instance(cell, instance.uuid))
        for instance in instances.of_host(cell, host)
        if not instance.hidden
    ]
    return RecordedHost(
        host,
        node.uuid if node is not None else mapping.node_uuid if mapping is not None else None,
        _hypervisor(servers, host),
        servers,
    )


def _hypervisor(servers: list[RecordedServer], host: str) -> str | None:
    """What Nova calls the host's hypervisor, as its servers say. Causeway calls it by the host's name; None: nobody says."""
    nodes = Counter(server.instance.node for server in servers if server.instance.node not in (None, host))
    return nodes.most_common(1)[0][0] if nodes else None
