"""Opens and closes hosts to new servers: in the service's record, and by a trait of its nodes in Placement.

The trait is changed first. If Placement refuses, the service stays as it was.
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
    """Opens or closes a host. ``database``: of its cell. ``more``: other changes of the service's record. May be repeated."""
    _set_trait(placement, database, service, disabled=disabled)
    hosts.update_service(database, service.uuid, disabled=disabled, **more)


def disable_for(placement: PlacementClient, database: Database, service: Service, reason: str) -> bool:
    """Closes a host. Returns False if it is closed for another reason. May be repeated."""
    _set_trait(placement, database, service, disabled=True)
    return hosts.swap_disabled(database, service, was=(False, None), disabled=True, disabled_reason=reason)


def enable_if_disabled_for(placement: PlacementClient, database: Database, service: Service, reason: str) -> bool:
    """Opens a host that is closed for this reason. Returns False if it is open, or closed for another reason. May be repeated."""
    _set_trait(placement, database, service, disabled=False)
    if hosts.swap_disabled(database, service, was=(True, reason), disabled=False, disabled_reason=None):
        return True
    if any(found.disabled for found in hosts.list_services(database, host=service.host, binary=service.binary)):
        _set_trait(placement, database, service, disabled=True)
    return False


def _set_trait(placement: PlacementClient, database: Database, service: Service, *, disabled: bool) -> None:
    trait = {DISABLED_TRAIT}
    for node in hosts.list_nodes(database, host=service.host):
        if disabled:
            placement.change_traits(node.uuid, add=trait)
        else:
            placement.change_traits(node.uuid, remove=trait)
