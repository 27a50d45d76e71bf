"""Opens and closes hosts to new servers: in the service's record, and by a trait of its nodes in Placement.

The trait is changed first. If Placement refuses, the service stays as it was.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import os_traits

from causeway.clients.placement import PlacementClient
from causeway.model.host import Service
from causeway.store import own_nodes
from causeway.store.cell import hosts
from causeway.store.database import Database

DISABLED_TRAIT: str = os_traits.COMPUTE_STATUS_DISABLED


@dataclass(frozen=True)
class HostRecords:
    """Where hosts of a cell are recorded. ``database``: the cell's."""

    api: Database
    placement: PlacementClient
    cell_uuid: str
    database: Database


def set_disabled(host: HostRecords, service: Service, *, disabled: bool, **more: Any) -> None:
    """Opens or closes a host. ``more``: other changes of the service's record. May be repeated."""
    _set_trait(host, service, disabled=disabled)
    hosts.update_service(host.database, service.uuid, disabled=disabled, **more)


def disable_for(host: HostRecords, service: Service, reason: str) -> bool:
    """Closes a host. Returns False if it is closed for another reason. May be repeated."""
    _set_trait(host, service, disabled=True)
    return hosts.swap_disabled(host.database, service, was=(False, None), disabled=True, disabled_reason=reason)


def enable_if_disabled_for(host: HostRecords, service: Service, reason: str) -> bool:
    """Opens a host that is closed for this reason. Returns False if it is open, or closed for another reason. May be repeated."""
    _set_trait(host, service, disabled=False)
    if hosts.swap_disabled(host.database, service, was=(True, reason), disabled=False, disabled_reason=None):
        return True
    if any(found.disabled for found in hosts.list_services(host.database, host=service.host, binary=service.binary)):
        _set_trait(host, service, disabled=True)
    return False


def _set_trait(host: HostRecords, service: Service, *, disabled: bool) -> None:
    trait = {DISABLED_TRAIT}
    for node in own_nodes.of_host(host.api, host.cell_uuid, host.database, service.host):
        if disabled:
            host.placement.change_traits(node.uuid, add=trait)
        else:
            host.placement.change_traits(node.uuid, remove=trait)
