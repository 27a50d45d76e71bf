"""Weighers: which of the hosts that may serve a request is the best. Names as in Nova."""

from __future__ import annotations

from dataclasses import dataclass

from oslo_config.cfg import ConfigOpts

from causeway.scheduler.filters.base import Request
from causeway.scheduler.host_state import HostState
from causeway.scheduler.weighers.base import HostWeigher, normalise
from causeway.scheduler.weighers.cross_cell import CrossCellWeigher
from causeway.scheduler.weighers.load import (
    BuildFailureWeigher,
    HypervisorVersionWeigher,
    IoOpsWeigher,
    NumInstancesWeigher,
)
from causeway.scheduler.weighers.resources import CPUWeigher, DiskWeigher, RAMWeigher
from causeway.scheduler.weighers.server_groups import ServerGroupSoftAffinityWeigher, ServerGroupSoftAntiAffinityWeigher
from causeway.scheduler.weighers.shared_storage import SharedStorageWeigher

ALL = "all"
AVAILABLE: dict[str, type[HostWeigher]] = {
    weigher_class.__name__: weigher_class
    for weigher_class in (
        BuildFailureWeigher,
        CPUWeigher,
        CrossCellWeigher,
        DiskWeigher,
        HypervisorVersionWeigher,
        IoOpsWeigher,
        NumInstancesWeigher,
        RAMWeigher,
        ServerGroupSoftAffinityWeigher,
        ServerGroupSoftAntiAffinityWeigher,
        SharedStorageWeigher,
    )
}


@dataclass
class Weighed:
    host: HostState
    weights: dict[str, float]
    total: float


def enabled_weighers(conf: ConfigOpts) -> list[HostWeigher]:
    """The weighers of ``[filter_scheduler]weight_classes``. Raises ValueError for an unknown one."""
    names = conf.filter_scheduler.weight_classes
    names = list(AVAILABLE) if ALL in names else names
    unknown = [name for name in names if name not in AVAILABLE]
    if unknown:
        raise ValueError(
            f"[filter_scheduler] weight_classes names {', '.join(unknown)}; there are {', '.join(sorted(AVAILABLE))}"
        )
    return [AVAILABLE[name](conf) for name in names]


def weigh(weighers: list[HostWeigher], hosts: list[HostState], request: Request) -> list[Weighed]:
    """The hosts, best first: each weigher's raw weights normalised over these hosts, times its multiplier, summed."""
    weighed = [Weighed(host, {}, 0.0) for host in hosts]
    # Hosts in the same aggregates have the same multipliers.
    places = [tuple(map(id, host.aggregates)) for host in hosts]
    for weigher in weighers:
        name, weights = weigher.name, normalise([weigher.weigh(host, request) for host in hosts])
        multipliers: dict[tuple[int, ...], float] = {}
        for one, place, weight in zip(weighed, places, weights, strict=True):
            if place not in multipliers:
                multipliers[place] = weigher.multiplier(one.host)
            score = weight * multipliers[place]
            one.weights[name] = score
            one.total += score
    return sorted(weighed, key=lambda one: one.total, reverse=True)


__all__ = ["AVAILABLE", "HostWeigher", "Weighed", "enabled_weighers", "normalise", "weigh"]
