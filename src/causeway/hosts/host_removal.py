"""Removes a host from the cloud: its provider in Placement, its aggregates and its mapping."""

from __future__ import annotations

from causeway.clients.placement import PlacementClient
from causeway.store import own_nodes
from causeway.store.api import aggregates, cells
from causeway.store.database import Database


def remove_host(api: Database, placement: PlacementClient, cell_uuid: str, database: Database, host: str) -> None:
    """Removes a host, except its service's record. The caller has checked that nothing is on it. May be repeated.

    ``database``: of its cell. What belongs to another host, whose node or name this one has reported, stays.
    """
    for node in own_nodes.of_host(api, cell_uuid, database, host):
        placement.delete_provider(node.uuid, cascade=True)
    mapping = cells.find_host(api, host)
    if mapping is not None and mapping.cell_uuid != cell_uuid:
        return
    for aggregate in aggregates.list_all(api):
        if host in aggregate.hosts:
            aggregates.remove_host(api, aggregate.id, host)
    cells.unmap_host(api, host)
