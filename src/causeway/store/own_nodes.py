"""Which nodes are their hosts' own.

The uuid of a node is unique in the database of a cell only, and so is the name of a host. A compromised host may report the uuid
of a node of another cell, which is also that of its provider in Placement, or the name of another host. The API database has the
cell and the node of each host (`causeway.store.api.cells.map_host`). Whoever chooses a host by its node, or acts on a node's
provider, uses only nodes that do not contradict it.

A host that is not mapped yet, or was mapped by a release that recorded no nodes, is believed as long as nobody else has its node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from typing import TypeVar

from causeway.model.host import ComputeNode, HostMapping
from causeway.store.api import cells as cell_records
from causeway.store.cell import hosts
from causeway.store.cells import Cells
from causeway.store.database import Database

T = TypeVar("T")


class OwnNodes:
    """``mappings``: of all hosts that have the names or the nodes that are asked about."""

    def __init__(self, mappings: Iterable[HostMapping]) -> None:
        self._by_host = {mapping.host: mapping for mapping in mappings}
        self._owners = {each.node_uuid: each.host for each in self._by_host.values() if each.node_uuid is not None}

    def has(self, cell_uuid: str, node: ComputeNode) -> bool:
        mapping = self._by_host.get(node.host)
        if mapping is not None and mapping.node_uuid not in (None, node.uuid):
            return False
        return self.is_of_cell(cell_uuid, node.host) and self._owners.get(node.uuid, node.host) == node.host

    def is_of_cell(self, cell_uuid: str, host: str) -> bool:
        """Whether no other cell has a host of this name."""
        mapping = self._by_host.get(host)
        return mapping is None or mapping.cell_uuid == cell_uuid

    def owner(self, node_uuid: str) -> str | None:
        """The host whose node this is; None if that is not recorded."""
        return self._owners.get(node_uuid)

    def cell_of(self, node_uuid: str) -> str | None:
        """The cell of the host whose node this is; None if that is not recorded."""
        host = self._owners.get(node_uuid)
        return None if host is None else self._by_host[host].cell_uuid

    def among(self, found: Iterable[T], place: Callable[[T], tuple[str, ComputeNode]]) -> list[T]:
        """Those of several cells that are believed. ``place``: the cell and the node of each.

        If several hosts have a node, and nobody knows whose it is, then neither of them is believed.
        """
        own = [one for one in found if self.has(*place(one))]
        count = Counter(place(one)[1].uuid for one in own)
        return [one for one in own if count[place(one)[1].uuid] == 1]


def of_all(api: Database) -> OwnNodes:
    return OwnNodes(cell_records.host_mappings(api))


def of_nodes(api: Database, nodes: Collection[str], *, hosts: Collection[str] = ()) -> OwnNodes:
    """What is known of some nodes, and of the ``hosts`` that reported them."""
    return OwnNodes(cell_records.host_mappings(api, hosts=hosts, nodes=nodes))


def of_host(api: Database, cell_uuid: str, database: Database, host: str) -> list[ComputeNode]:
    """The nodes of a host that are its own. ``database``: of its cell."""
    nodes = hosts.list_nodes(database, host=host)
    own = OwnNodes(cell_records.host_mappings(api, hosts=[host], nodes={node.uuid for node in nodes}) if nodes else [])
    return [node for node in nodes if own.has(cell_uuid, node)]


def first_hosts(cells: Cells, node_uuids: Iterable[str]) -> dict[str, tuple[str, str]]:
    """uuid of a node -> the host that reported it first, and its cell. Cells that do not answer are left out."""
    wanted = set(node_uuids)
    answers = cells.ask_all(
        lambda _cell, database: hosts.first_seen(database, wanted), cell0=False, without_failed=True
    )
    seen = sorted(
        (since, host, cell_uuid, uuid) for cell_uuid, found in answers.by_cell.items() for uuid, host, since in found
    )
    return {uuid: (host, cell_uuid) for _since, host, cell_uuid, uuid in reversed(seen)}
