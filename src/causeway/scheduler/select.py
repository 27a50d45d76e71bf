"""From candidates to a ranking: filters, then weighers, each host with its verdict. Claims nothing, and calls no service."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from oslo_config.cfg import ConfigOpts

from causeway.clients.placement import AllocationRequest, Candidates
from causeway.scheduler.explain import Explanation, HostVerdict, Refusal
from causeway.scheduler.filters import HostFilter, Request, RequestedDestination, enabled_filters, first_refusal
from causeway.scheduler.host_state import HostState
from causeway.scheduler.request import RequestSpec, Selection
from causeway.scheduler.weighers import HostWeigher, enabled_weighers, weigh

T = TypeVar("T")


@dataclass
class Ranking:
    """Hosts that fit, best first, and the verdict on every host."""

    fitting: list[HostState] = field(default_factory=list)
    verdicts: dict[str, HostVerdict] = field(default_factory=dict)

    def explanation(self, silent_cells: list[str]) -> Explanation:
        hosts = sorted(self.verdicts.values(), key=lambda one: (one.refusal is not None, -one.total, one.host))
        return Explanation(hosts=hosts, silent_cells=silent_cells)


class Ranker:
    """The filters and weighers of the configuration, applied."""

    def __init__(self, conf: ConfigOpts) -> None:
        self.requested: HostFilter = RequestedDestination(conf)
        self.filters = enabled_filters(conf)
        self.weighers: list[HostWeigher] = enabled_weighers(conf)
        self._subset_size: int = conf.filter_scheduler.host_subset_size
        self._shuffle: bool = conf.filter_scheduler.shuffle_best_same_weighed_hosts
        self._random = random.SystemRandom()

    def rank(self, hosts: list[HostState], request: Request) -> Ranking:
        """Filters and weighs hosts. Forced hosts only have to meet the request's own conditions."""
        filters = [self.requested] if request.spec.force_hosts else [self.requested, *self.filters]
        ranking = Ranking()
        passed: list[HostState] = []
        for host in hosts:
            refusal = first_refusal(filters, host, request)
            ranking.verdicts[host.node_uuid] = verdict_on(host, refusal)
            if refusal is None:
                passed.append(host)
        weighed = weigh(self.weighers, passed, request)
        for one in weighed:
            verdict = ranking.verdicts[one.host.node_uuid]
            verdict.weights, verdict.total = one.weights, one.total
        ranking.fitting = [one.host for one in self.varied(weighed, lambda one: one.total)]
        return ranking

    def varied(self, best_first: list[T], total: Callable[[T], float]) -> list[T]:
        """The same hosts, with one of the best ``host_subset_size`` first, and the equally best shuffled if configured."""
        varied = list(best_first)
        if varied and self._shuffle:
            best = [one for one in varied if total(one) == total(varied[0])]
            self._random.shuffle(best)
            varied[: len(best)] = best
        if self._subset_size > 1 and varied:
            varied.insert(0, varied.pop(self._random.randrange(min(self._subset_size, len(varied)))))
        return varied


def verdict_on(host: HostState, refusal: Refusal | None) -> HostVerdict:
    return HostVerdict(
        host=host.host,
        hypervisor_hostname=host.record.node.hypervisor_hostname,
        node_uuid=host.node_uuid,
        cell_uuid=host.cell_uuid,
        cell_name=host.record.cell_name,
        refusal=refusal,
    )


def by_node(candidates: Candidates) -> dict[str, AllocationRequest]:
    """Compute node's provider -> the first way that Placement offers to allocate there."""
    found: dict[str, AllocationRequest] = {}
    for request in candidates.requests:
        found.setdefault(candidates.root_of(request), request)
    return found


def alternates_of(
    selected: HostState, fitting: list[HostState], count: int, usable: Callable[[HostState], bool]
) -> list[HostState]:
    """Returns the next best hosts in the cell of the chosen one. Alternates must be there, where the server is set up by then."""
    others = [
        host
        for host in fitting
        if host.node_uuid != selected.node_uuid and host.cell_uuid == selected.cell_uuid and usable(host)
    ]
    return others[: max(0, count)]


def may_follow(host: HostState, selected: HostState, storage: str | None) -> bool:
    """Whether a host may be claimed after the selected one refused. ``storage``: of the server's disk.

    The claim of a host that shares the storage has left the disk with the server, so the next host must share it, too.
    """
    return host.shares(storage) or not selected.shares(storage)


def selection_of(host: HostState, how: AllocationRequest, spec: RequestSpec, default_zone: str) -> Selection:
    """``how``: the way in which Placement offers to allocate there."""
    return Selection(
        host=host.host,
        node_uuid=host.node_uuid,
        hypervisor_hostname=host.record.node.hypervisor_hostname,
        cell_uuid=host.cell_uuid,
        cell_name=host.record.cell_name,
        allocation_request=how,
        availability_zone=host.availability_zone(default_zone),
        host_ip=host.record.node.host_ip,
        limits=dict(spec.limits),
    )
