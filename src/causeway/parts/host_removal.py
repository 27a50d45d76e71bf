"""A host is taken out of the cloud: its provider in Placement, its aggregates, its mapping, the records of its service."""

from __future__ import annotations

from causeway.clients.placement import PlacementClient
from causeway.store.api import aggregates, cells
from causeway.store.cell import hosts
from causeway.store.database import Database


def remove_host(api: Database, placement: PlacementClient, database: Database, host: str) -> None:
    """What the cloud knows of a host, but for its service's record. The caller has seen that nothing is there. May be repeated.

    ``database``: of its cell.
    """
    for node in hosts.list_nodes(database, host=host):
        placement.delete_provider(node.uuid, cascade=True)
    for aggregate in aggregates.list_all(api):
        if host in aggregate.hosts:
            aggregates.remove_host(api, aggregate.id, host)
    cells.unmap_host(api, host)
