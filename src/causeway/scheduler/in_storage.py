"""Hosts for a move inside of storage that they share: its disk is there already, so they need room only for its growth."""

from __future__ import annotations

from dataclasses import dataclass, replace

from causeway.clients.placement import AllocationRequest, Candidates, CandidatesRequest, PlacementClient
from causeway.clients.placement.kept_disk import DISK, of_storage
from causeway.clients.placement.types import Resources
from causeway.scheduler.request import RequestSpec


@dataclass(frozen=True)
class InStorage:
    """``asked``: what is asked of these hosts, which are in one of ``aggregates``; ``disk_gb``: of the server after its move;
    ``pool``: the provider of their storage.
    """

    asked: CandidatesRequest
    disk_gb: int
    pool: str
    aggregates: set[str]

    def offers(self, placement: PlacementClient) -> Candidates:
        """What Placement offers there, each with the whole disk, as it is to be claimed."""
        groups = [
            group if group.suffix else replace(group, member_of=[*group.member_of, self.aggregates])
            for group in self.asked.groups
        ]
        found = placement.allocation_candidates(replace(self.asked, groups=groups))
        return replace(found, requests=[self._with_disk(one) for one in found.requests])

    def _with_disk(self, offered: AllocationRequest) -> AllocationRequest:
        return replace(offered, allocations=offered.allocations | {self.pool: {DISK: self.disk_gb}})


def in_storage(placement: PlacementClient, spec: RequestSpec, asked: CandidatesRequest) -> InStorage | None:
    """Returns what a server needs on hosts that share the storage of its disk; None if Placement has no disk of it in any.

    ``asked``: what it needs elsewhere.
    """
    held = placement.get_allocations(spec.instance_uuid).allocations
    pools = of_storage(held)
    main = next((group for group in asked.groups if not group.suffix and DISK in group.resources), None)
    if len(pools) != 1 or main is None:
        return None
    (pool,) = pools
    there = replace(main, resources=needed_there(main.resources, held[pool][DISK]))
    groups = [there if group is main else group for group in asked.groups]
    return InStorage(replace(asked, groups=groups), main.resources[DISK], pool, placement.get_aggregates(pool))


def needed_there(resources: Resources, before: int) -> Resources:
    """What a server needs on such a host of ``resources``. ``before``: GiB of its disk, of which only the growth is needed."""
    others = {name: amount for name, amount in resources.items() if name != DISK}
    growth = resources.get(DISK, 0) - before
    return others | {DISK: growth} if growth > 0 else others
