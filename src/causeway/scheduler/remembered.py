"""Finds a host for one server of a large cloud: chosen by remembered knowledge of all hosts, and checked before its claim.

Placement is only asked about the chosen host, and its answer decides: if the host has less than was remembered, the choice is
made again; if it does not fit, it is left out. After some failed choices, and for what memory can't decide, all hosts are looked
up (`search`): so no request is refused because of what is remembered.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace

from causeway import errors, metrics
from causeway.clients.placement import AllocationRequest, Candidates, CandidatesRequest
from causeway.scheduler.diagnose import PLACEMENT, not_in_aggregates, wrong_traits
from causeway.scheduler.explain import Explanation, HostVerdict, Refusal
from causeway.scheduler.filters import Request
from causeway.scheduler.fleet import ANCHOR, Choice, Fleet
from causeway.scheduler.fleet_view import not_offered
from causeway.scheduler.host_state import HostState
from causeway.scheduler.request import MoveClaim, RequestSpec, SchedulingResult
from causeway.scheduler.search import Tools, full_when_claimed
from causeway.scheduler.select import by_node, may_follow, selection_of, verdict_on

LOG = logging.getLogger(__name__)

# How many hosts are checked before all are looked up.
TRIES = 5


def can_be_decided(spec: RequestSpec, asked: CandidatesRequest) -> bool:
    """Whether remembered knowledge suffices to choose a host: not for NUMA cells, devices, or providers below a node."""
    plain = len(asked.groups) == 1 and not asked.groups[0].suffix and asked.groups[0].in_tree is None
    return (
        plain
        and ANCHOR in asked.resources
        and not asked.same_subtree
        and spec.numa_topology is None
        and not spec.pci_requests
        and not spec.force_hosts
    )


class RememberedSearch:
    """The counterpart of `Search` that chooses by remembered knowledge."""

    def __init__(
        self, tools: Tools, fleet: Fleet, spec: RequestSpec, asked: CandidatesRequest, request: Request
    ) -> None:
        self._tools = tools
        self._fleet = fleet
        self._spec = spec
        self._asked = asked
        self._request = request
        self._claimed: list[Choice] = []

    def close(self) -> None:
        """Ends the search. Called when the request has been answered."""
        self._fleet.ended(self._claimed)

    def place(self, instance_uuid: str, *, alternates: bool, move: MoveClaim | None) -> SchedulingResult | None:
        """Chooses a host and claims it. None if no host was found."""
        count = self._tools.num_alternates if alternates else 0
        refused: dict[str, HostVerdict] = {}
        for attempt in range(1, TRIES + 1):
            choice = self._fleet.choose(self._asked, self._request, alternates=count, without=refused.keys())
            if choice is None:
                return None
            host = choice.host
            how, refusal = None, None
            try:
                how, refusal = self._look(choice, is_last=attempt == TRIES)
                if how is not None:
                    refusal = self._claim(host, instance_uuid, how, move)
            except BaseException:
                self._fleet.release(choice)
                raise
            if how is not None and refusal is None:
                self._fleet.claimed(choice)
                self._claimed.append(choice)
                return self._result(instance_uuid, choice, how, refused)
            self._fleet.release(choice)
            if refusal is not None:
                refused[host.node_uuid] = verdict_on(host, refusal)
        return None

    def _look(self, choice: Choice, *, is_last: bool) -> tuple[AllocationRequest | None, Refusal | None]:
        """Returns how the host would serve the request, or why it can't; neither if another host may be better by now."""
        host, asked_at = choice.host, time.monotonic()
        candidates = self._ask(host.node_uuid)
        how = by_node(candidates).get(host.node_uuid)
        tree = [one for one in candidates.providers.values() if one.root_uuid == host.node_uuid]
        if how is None:
            self._fleet.note_not_offered(self._request.spec, self._asked, host.node_uuid)
            return None, not_offered()
        has_less = self._fleet.note(host.node_uuid, tree, asked_at)
        traits = set().union(*(one.traits for one in tree))
        refusal = wrong_traits(traits, self._asked) or not_in_aggregates(host, self._request, self._asked)
        if refusal is not None:
            refusal.filter = PLACEMENT
            return None, refusal
        return (None, None) if has_less and not is_last else (how, None)

    def _ask(self, node_uuid: str) -> Candidates:
        """Asks Placement for an offer on a node. Compares aggregates and root traits here: Placement would check all hosts."""
        group = replace(self._asked.groups[0], in_tree=node_uuid, member_of=[], forbidden_aggregates=set())
        asked = replace(self._asked, groups=[group], root_required=set(), root_forbidden=set(), limit=None)
        return self._tools.placement.allocation_candidates(asked)

    def _claim(
        self, host: HostState, instance_uuid: str, how: AllocationRequest, move: MoveClaim | None
    ) -> Refusal | None:
        try:
            keeps_disk = host.shares(self._spec.source_storage)
            self._tools.claims.claim(self._spec, instance_uuid, how, move, keeps_disk=keeps_disk)
        except errors.ClaimRefused as refused:
            LOG.info("Placement refused the claim of server %s on %s: %s", instance_uuid, host.host, refused.details)
            return full_when_claimed(refused)
        return None

    def _result(
        self, instance_uuid: str, choice: Choice, how: AllocationRequest, refused: dict[str, HostVerdict]
    ) -> SchedulingResult:
        tools, spec, host = self._tools, self._spec, choice.host
        verdicts = {one.node_uuid: one for one in choice.best} | refused
        verdicts[host.node_uuid].selected = True
        fits = sum(one.refusal is None for one in verdicts.values())
        explanation = Explanation(
            hosts=list(verdicts.values()),
            silent_cells=tools.hosts.silent_cells(),
            others_fit=choice.fit - fits,
            others_refused=choice.refused,
        )
        for group in choice.refused:
            metrics.SCHEDULER_REFUSALS.labels(group.filter).inc(group.hosts)
        following = [other for other in choice.same_cell if may_follow(other, host, spec.source_storage)]
        others = [(other, self._how_there(other, how, host)) for other in following]
        tools.remember_pick(self._request, instance_uuid, host.host)
        return SchedulingResult(
            instance_uuid=instance_uuid,
            selected=selection_of(host, how, spec, tools.default_zone),
            alternates=[selection_of(other, there, spec, tools.default_zone) for other, there in others if there],
            explanation=explanation,
        )

    def _how_there(self, other: HostState, how: AllocationRequest, host: HostState) -> AllocationRequest | None:
        """How an alternate would serve the request: like the chosen host, if no other provider is involved."""
        if how.allocations.keys() != {host.node_uuid}:
            return by_node(self._ask(other.node_uuid)).get(other.node_uuid)
        return AllocationRequest(
            {other.node_uuid: dict(how.allocations[host.node_uuid])},
            {group: [other.node_uuid] for group in how.mappings},
        )
