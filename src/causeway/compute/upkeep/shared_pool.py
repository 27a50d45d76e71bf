"""Storage that hosts share, in Placement: a provider of its own, whose disk is that of all of these hosts, and counted once.

Its uuid follows from the storage, so that all hosts make the same; the aggregate of its hosts has that uuid, too. An operator who
has made such a provider before keeps it: hosts that have one get no other.
"""

from __future__ import annotations

from uuid import UUID, uuid5

import os_resource_classes
import os_traits

from causeway.clients.placement import PlacementClient
from causeway.clients.placement.types import Inventory

_OF_STORAGE = UUID("7a0f7c5e-7f0e-4d57-9b0c-52f3a1f2d6c4")
_NAME = "storage "


class SharedPool:
    """What a host reports of the storage that it shares. ``node``: the uuid of the host's own provider."""

    def __init__(self, placement: PlacementClient, node: str) -> None:
        self._placement = placement
        self._node = node
        self._reported: tuple[str | None, Inventory | None] | None = None

    def report(self, storage: str | None, disk: Inventory | None) -> None:
        """Reports the disk of the host's storage, if that has changed. None: the host shares none."""
        wanted = (storage, disk)
        if wanted == self._reported:
            return
        pool = None if storage is None else str(uuid5(_OF_STORAGE, storage))
        self._leave_others(pool)
        if pool is not None and disk is not None and not self._is_in_another(pool):
            placement = self._placement
            placement.ensure_provider(pool, f"{_NAME}{storage}")
            placement.set_inventory(pool, {os_resource_classes.DISK_GB: disk})
            placement.change_traits(pool, add={os_traits.MISC_SHARES_VIA_AGGREGATE}, remove=set())
            for provider in (pool, self._node):
                placement.add_aggregate(provider, pool)
        self._reported = wanted

    def _leave_others(self, pool: str | None) -> None:
        """Leaves the storage that this host had before."""
        for aggregate in self._placement.get_aggregates(self._node) - {pool}:
            provider = self._placement.get_provider(aggregate)
            if provider is not None and provider.name.startswith(_NAME):
                self._placement.remove_aggregate(self._node, aggregate)

    def _is_in_another(self, pool: str) -> bool:
        disk = os_resource_classes.DISK_GB
        return any(each != pool for each in self._placement.sharing_with(self._node, disk))
