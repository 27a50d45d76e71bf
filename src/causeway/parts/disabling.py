"""A host takes new servers, or none: its service's record says so, and a trait of its nodes in Placement.

The trait is changed first: if Placement refuses, the service stays as it was.
"""

from __future__ import annotations

from typing import Any

import os_traits

from causeway.clients.placement import PlacementClient
from causeway.model.host import Service
from causeway.store.cell import hosts
from causeway.store.database import Database

DISABLED_TRAIT: str = os_traits.COMPUTE_STATUS_DISABLED


def set_disabled(
    placement: PlacementClient, database: Database, service: Service, *, disabled: bool, **more: Any
) -> None:
    """``service``: of a compute; ``database``: of its cell. ``more``: what else changes in its record. May be repeated."""
    trait = {DISABLED_TRAIT}
    for node in hosts.list_nodes(database, host=service.host):
        if disabled:
            placement.change_traits(node.uuid, add=trait)
        else:
            placement.change_traits(node.uuid, remove=trait)
    hosts.update_service(database, service.uuid, disabled=disabled, **more)
