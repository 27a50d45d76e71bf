"""One request under way: rank what Placement offers, claim the best, say why."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from causeway import errors, metrics
from causeway.clients.placement import Candidates, CandidatesRequest, PlacementClient
from causeway.hardware.misfit import Misfit
from causeway.model.numa import InstanceNUMATopology
from causeway.scheduler.claims import Claims
from causeway.scheduler.diagnose import PLACEMENT, look_closer, why_not_offered
from causeway.scheduler.explain import Refusal
from causeway.scheduler.filters import HostFilter, Request
from causeway.scheduler.filters.hardware import fitted
from causeway.scheduler.group_picks import GroupPicks
from causeway.scheduler.host_state import HostCache, HostState
from causeway.scheduler.in_storage import InStorage, in_storage
from causeway.scheduler.request import MoveClaim, RequestSpec, SchedulingResult, Selection
from causeway.scheduler.select import Ranker, Ranking, alternates_of, by_node, may_follow, selection_of, verdict_on

LOG = logging.getLogger(__name__)

NO_VALID_HOST = "No valid host was found."


@dataclass(frozen=True)
class Tools:
    """The parts that all searches of a scheduler share.

    ``decisive``: filters that are asked first about a host that Placement does not offer: they say more than "full".
    """

    placement: PlacementClient
    claims: Claims
    hosts: HostCache
    ranker: Ranker
    decisive: list[HostFilter]
    groups: GroupPicks
    num_alternates: int
    default_zone: str

    def remember_pick(self, request: Request, instance_uuid: str, host: str) -> None:
        """Counts a server of a group on its new host, for the next servers of this request and of others."""
        group = request.spec.server_group
        if group is not None:
            request.group_hosts[host] = request.group_hosts.get(host, 0) + 1
            self.groups.add(group.uuid, instance_uuid, host)


def full_when_claimed(refused: errors.ClaimRefused) -> Refusal:
    return Refusal(
        "was full when it was claimed",
        "were full when they were claimed",
        {"Placement": refused.details},
        filter=PLACEMENT,
    )


class Search:
    """The offers of Placement for a request, and the hosts as this request sees them, with the servers that it has placed."""

    def __init__(
        self, tools: Tools, spec: RequestSpec, asked: CandidatesRequest, candidates: Candidates, request: Request
    ) -> None:
        self._tools = tools
        self._spec = spec
        self._asked = asked
        self._candidates = candidates
        self._request = request
        self._offered = by_node(candidates)
        self._states: list[HostState] | None = None
        self._in_storage: InStorage | None = None

    def rank(self) -> Ranking:
        if self._states is None:
            self._states = self._hosts_of(self._offered, self._candidates)
            self._states += self._more_in_storage(self._states)
            unknown = self._offered.keys() - {host.node_uuid for host in self._states}
            if unknown:
                LOG.info("Placement offers providers that no cell has a compute node for: %s", ", ".join(unknown))
        return self._tools.ranker.rank(self._states, self._request)

    def _hosts_of(self, nodes: Iterable[str], candidates: Candidates) -> list[HostState]:
        # Hosts report how much of their hardware is in use. Remembered reports may be older than the last claim.
        is_hardware = self._spec.numa_topology is not None or bool(self._spec.pci_requests)
        return self._tools.hosts.states({uuid: candidates.providers[uuid] for uuid in nodes}, anew=is_hardware)

    def _more_in_storage(self, offered: list[HostState]) -> list[HostState]:
        """Offers hosts that share the storage of the server's disk, if none is offered: that has no room for a second disk."""
        storage, placement = self._spec.source_storage, self._tools.placement
        if storage is None or any(host.shares(storage) for host in offered):
            return []
        self._in_storage = in_storage(placement, self._spec, self._asked)
        if self._in_storage is None:
            return []
        candidates = self._in_storage.offers(placement)
        there = by_node(candidates)
        hosts = [host for host in self._hosts_of(there, candidates) if host.shares(storage)]
        self._offered |= {host.node_uuid: there[host.node_uuid] for host in hosts}
        return hosts

    def place(self, instance_uuid: str, *, alternates: bool, move: MoveClaim | None) -> SchedulingResult:
        """Ranks and claims. Raises NoValidHost."""
        ranking = self.rank()
        selected = self._claim_best(ranking, instance_uuid, move)
        if selected is None and self._asked.limit == len(self._candidates.requests):
            # None of the first candidates is suitable, but there may be others.
            self._ask_without_limit()
            ranking = self.rank()
            selected = self._claim_best(ranking, instance_uuid, move)
        if selected is None:
            self.add_those_not_offered(ranking, closer=True)
            self._count_refusals(ranking)
            explanation = ranking.explanation(self._tools.hosts.silent_cells())
            message, details = f"{NO_VALID_HOST} {explanation.summary()}.", explanation.summary(with_hosts=True)
            # A move that waits keeps its server from its user, so only new servers wait for hosts.
            if self._spec.is_new and (cells := self._tools.hosts.silent_together()):
                why = f"All hosts of {', '.join(cells)} stopped reporting at the same time: look at the message queue."
                raise errors.HostsSilent(message, details=f"{details} {why}")
            raise errors.NoValidHost(message, details=details)
        others = alternates_of(
            selected,
            ranking.fitting,
            self._tools.num_alternates if alternates else 0,
            lambda host: (
                ranking.verdicts[host.node_uuid].refusal is None
                and may_follow(host, selected, self._spec.source_storage)
            ),
        )
        self.add_those_not_offered(ranking, closer=False)
        self._count_refusals(ranking)
        result = SchedulingResult(
            instance_uuid=instance_uuid,
            selected=self._selection(selected),
            alternates=[self._selection(host) for host in others],
            explanation=ranking.explanation(self._tools.hosts.silent_cells()).in_short(),
        )
        selected.take(self._offered[selected.node_uuid].allocations.get(selected.node_uuid, {}))
        selected.take_hardware(self._fitted(selected), self._spec.pci_requests)
        self._tools.remember_pick(self._request, instance_uuid, selected.host)
        return result

    def _selection(self, host: HostState) -> Selection:
        return selection_of(host, self._offered[host.node_uuid], self._spec, self._tools.default_zone)

    def _ask_without_limit(self) -> None:
        self._asked = replace(self._asked, limit=None)
        self._candidates = self._tools.placement.allocation_candidates(self._asked)
        self._offered, self._states = by_node(self._candidates), None

    def _count_refusals(self, ranking: Ranking) -> None:
        refused = Counter(one.refusal.filter for one in ranking.verdicts.values() if one.refusal is not None)
        for name, hosts in refused.items():
            metrics.SCHEDULER_REFUSALS.labels(name).inc(hosts)

    def add_those_not_offered(self, ranking: Ranking, *, closer: bool) -> None:
        """Adds verdicts on hosts that are not candidates. ``closer``: asks Placement more, for better explanations."""
        missing = self._tools.hosts.states(without=self._offered.keys())
        offers = look_closer(self._tools.placement, self._asked.resources) if closer and missing else None
        for host in missing:
            there = self._in_storage if host.shares(self._spec.source_storage) else None
            asked = self._asked if there is None else there.asked
            refusal = why_not_offered(host, self._request, asked, self._tools.decisive, offers)
            ranking.verdicts[host.node_uuid] = verdict_on(host, refusal)

    def _fitted(self, host: HostState) -> InstanceNUMATopology | None:
        try:
            return fitted(host, self._request)
        except Misfit:
            # Only if the filters are switched off, or skipped; the host decides.
            return None

    def _claim_best(self, ranking: Ranking, instance_uuid: str, move: MoveClaim | None) -> HostState | None:
        for host in ranking.fitting:
            verdict = ranking.verdicts[host.node_uuid]
            how, keeps_disk = self._offered[host.node_uuid], host.shares(self._spec.source_storage)
            try:
                self._tools.claims.claim(self._spec, instance_uuid, how, move, keeps_disk=keeps_disk)
            except errors.ClaimRefused as refused:
                LOG.info(
                    "Placement refused the claim of server %s on %s: %s", instance_uuid, host.host, refused.details
                )
                verdict.refusal = full_when_claimed(refused)
                continue
            verdict.selected = True
            return host
        return None
