"""Removes a host from the cloud: its provider in Placement, its aggregates and its mapping."""

from __future__ import annotations

from causeway.clients.placement import PlacementClient
from causeway.store.api import aggregates, cells
from causeway.store.cell import hosts
from causeway.store.database import Database


def remove_host(api: Database, placement: PlacementClient, database: Database, host: str) -> None:
    """Removes a host, except its service's record. The caller has checked that nothing is on it. May be repeated.

    ``database``: of its cell.
    """
    for node in hosts.list_nodes(database, host=host):
        placement.delete_provider(node.uuid, cascade=True)
    for aggregate in aggregates.list_all(api):
        if host in aggregate.hosts:
            aggregates.remove_host(api, aggregate.id, host)
    cells.unmap_host(api, host)
