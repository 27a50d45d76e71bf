"""Usage by Placement and the instance mappings: for unified limits, and for [quota] count_usage_from_placement.

Placement counts what is allocated: a server that moves has its amounts on both hosts until it is confirmed or reverted, and a
shelved and offloaded one has none. A new server has no allocation yet; it is counted by its build request, so that a burst of
requests can't pass the limit before the scheduler has seen the first one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from causeway import errors
from causeway.api.services import ApiServices
from causeway.clients.placement.types import Resources
from causeway.model.block_device import is_volume_backed
from causeway.model.flavor import Flavor
from causeway.model.image import ImageMeta
from causeway.scheduler.resources import flavor_groups
from causeway.store.api import build_requests, mappings
from causeway.store.api.build_requests import BuildRequest

VCPU, PCPU, MEMORY_MB = "VCPU", "PCPU", "MEMORY_MB"


def of_flavor(flavor: Flavor, *, volume_backed: bool, image: ImageMeta | None = None) -> Resources:
    """What a server of a flavor takes: the sum of all groups of its request."""
    try:
        groups = flavor_groups(flavor, is_volume_backed=volume_backed, image=image)
    except errors.NoValidHost:
        # No host will be found for it; the build reports why.
        return {}
    total: Counter[str] = Counter()
    for group in groups.values():
        total.update(group.resources)
    return dict(total)


def servers(services: ApiServices, project_id: str, user_id: str | None = None) -> int:
    """The number of servers of a project (of a user in it) in all cells, including those that have no cell yet."""
    return mappings.count_living(services.api, project_id, user_id)


def amounts(
    services: ApiServices, project_id: str, user_id: str | None, room: Mapping[str, int] | None = None
) -> Resources:
    """Resource class -> what is allocated or about to be.

    ``room``: what may be in use at most. Only if that might be exceeded (or if it is None) Placement is asked, server by
    server, which of the servers without a cell have their allocation already, so that none is counted twice.
    """
    waiting = _waiting(services, project_id, user_id)
    claimed = services.placement.get_project_usages(project_id, user_id)
    found = _sum(claimed, waiting)
    if not waiting or (room is not None and all(found.get(name, 0) <= most for name, most in room.items())):
        return found
    # In this order: a server that has no allocation now had none when Placement was asked for the usage.
    return _sum(
        claimed, [each for each in waiting if not services.placement.get_allocations(each.instance_uuid).allocations]
    )


def _waiting(services: ApiServices, project_id: str, user_id: str | None) -> list[BuildRequest]:
    """Build requests of servers that have no cell yet."""
    pending = [
        each for each in build_requests.list_for(services.api, project_id) if user_id in (None, each.instance.user_id)
    ]
    mapped = mappings.cells_of(services.api, [each.instance_uuid for each in pending])
    return [each for each in pending if each.instance_uuid in mapped and mapped[each.instance_uuid] is None]


def _sum(claimed: Resources, waiting: Collection[BuildRequest]) -> Resources:
    total = Counter(claimed)
    for each in waiting:
        instance = each.instance
        total.update(
            of_flavor(instance.flavor, volume_backed=is_volume_backed(each.block_devices), image=instance.image_meta)
        )
    return dict(total)
