"""The scheduler: finds hosts for servers, claims them in Placement, and says why.

1. One query to Placement for everything that has room and fits (`resources`).
2. The hosts of all cells, from a cache (`host_state`); filters, then weighers (`select`).
3. The best host is claimed, the next one if Placement refuses; alternates are of the chosen host's cell.
4. Whatever comes out, every host has its verdict (`explain`, `diagnose`).

A boot costs two Placement calls, a move two. A claim is atomic in Placement, so two requests that race for the last slot
are told apart there. What Placement does not know, server groups, is kept apart per scheduler (`group_picks`); the host
checks it again before it builds.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from oslo_config.cfg import ConfigOpts

from causeway import errors
from causeway.clients.placement import AllocationRequest, Candidates, CandidatesRequest, PlacementClient
from causeway.scheduler.diagnose import PLACEMENT, look_closer, why_not_offered
from causeway.scheduler.explain import Explanation, Refusal
from causeway.scheduler.filters import HostFilter, Request
from causeway.scheduler.filters.compute import ComputeFilter
from causeway.scheduler.group_picks import GroupPicks
from causeway.scheduler.host_state import HostCache, HostRecord, HostSource, HostState
from causeway.scheduler.request import MoveClaim, RequestSpec, SchedulingResult, Selection
from causeway.scheduler.resources import Prefilters, candidates_request
from causeway.scheduler.select import Ranker, Ranking, alternates_of, by_node, verdict_on

if TYPE_CHECKING:
    from causeway.context import RequestContext

LOG = logging.getLogger(__name__)

DEFAULT_SERVICE_DOWN_TIME = 60
DEFAULT_AVAILABILITY_ZONE = "nova"
NO_VALID_HOST = "No valid host was found."


class Scheduler:
    """Safe to use from many threads. Holds a cache of hosts and nothing that matters."""

    def __init__(self, conf: ConfigOpts, placement: PlacementClient, source: HostSource) -> None:
        """``conf`` has the options of `causeway.conf.scheduler`; service_down_time and default_availability_zone are read
        from [DEFAULT] if they are registered there.

        Raises ValueError if the configuration names filters or weighers that do not exist.
        """
        options = conf.scheduler
        self._placement = placement
        self._source = source
        self._ranker = Ranker(conf)
        # What these say about a host says more than that it is full.
        self._decisive: list[HostFilter] = [self._ranker.requested, ComputeFilter(conf)]
        self._max_attempts: int = options.max_attempts
        self._default_zone: str = getattr(conf, "default_availability_zone", DEFAULT_AVAILABILITY_ZONE)
        self._prefilters = Prefilters(
            max_placement_results=options.max_placement_results,
            limit_tenants=options.limit_tenants_to_placement_aggregate,
            aggregate_required_for_tenants=options.placement_aggregate_required_for_tenants,
            image_type_support=options.query_placement_for_image_type_support,
            isolated_aggregates=options.enable_isolated_aggregate_filtering,
            default_availability_zone=self._default_zone,
        )
        self._hosts = HostCache(
            source,
            max_age=options.host_state_max_age,
            service_down_time=getattr(conf, "service_down_time", DEFAULT_SERVICE_DOWN_TIME),
        )
        self._groups = GroupPicks()

    def invalidate(self) -> None:
        """Hosts, services, cells or aggregates have changed: look again for the next request."""
        self._hosts.invalidate()

    def select_destinations(
        self,
        context: RequestContext | None,  # noqa: ARG002 - whoever asks: the spec has the server's owner
        spec: RequestSpec,
        instance_uuids: list[str],
        *,
        alternates: bool = True,
        move: MoveClaim | None = None,
    ) -> list[SchedulingResult]:
        """A claimed host for each server, in the order of ``instance_uuids``.

        ``move``: the claim gives what the server holds to the migration in the same call. All or nothing: if one server
        gets no host, the claims of the others are given up.
        Raises NoValidHost, with the explanation in one sentence (host names in ``details``).
        """
        with self._groups.turn(spec.server_group.uuid if spec.server_group else None):
            began = time.monotonic()
            try:
                return self._place(spec, instance_uuids, alternates, move)
            except errors.NoValidHost:
                # What is remembered of hosts and aggregates may be what refused.
                if not self._hosts.look_again_unless_looked_since(began):
                    raise
            return self._place(spec, instance_uuids, alternates, move)

    def explain(self, context: RequestContext | None, spec: RequestSpec) -> Explanation:  # noqa: ARG002
        """What `select_destinations` would say of every host of every cell; changes nothing."""
        try:
            search = self._search(spec)
        except errors.NoValidHost as none:
            return Explanation(note=none.message.removeprefix(NO_VALID_HOST).strip())
        ranking = search.rank()
        if ranking.fitting:
            ranking.verdicts[ranking.fitting[0].node_uuid].selected = True
        search.add_those_not_offered(ranking, closer=True)
        return ranking.explanation()

    def _place(
        self, spec: RequestSpec, instance_uuids: list[str], alternates: bool, move: MoveClaim | None
    ) -> list[SchedulingResult]:
        results: list[SchedulingResult] = []
        try:
            search = self._search(spec)
            for instance_uuid in instance_uuids:
                results.append(search.place(instance_uuid, alternates=alternates, move=move))
        except Exception:
            for result in results:
                self._placement.delete_allocations(result.instance_uuid)
            raise
        return results

    def _search(self, spec: RequestSpec) -> _Search:
        asked = candidates_request(
            spec, self._hosts.aggregates(), self._prefilters, in_tree=self._requested_provider(spec)
        )
        candidates = self._placement.allocation_candidates(asked)
        return _Search(self, spec, asked, candidates, self._request(spec))

    def _requested_provider(self, spec: RequestSpec) -> str | None:
        """The provider of the one host that is asked for; None if any will do, or the host has several nodes."""
        wanted = spec.requested_destination
        host = wanted.host if wanted is not None else None
        node = wanted.node if wanted is not None else None
        if host is None and len(spec.force_hosts) == 1:
            host = spec.force_hosts[0]
        if host is None:
            return None
        found: list[HostRecord] = self._hosts.find(host=host, node=node)
        if not found:
            raise errors.NoValidHost(f"{NO_VALID_HOST} No such host - host: {host} node: {node}")
        return found[0].node.uuid if len(found) == 1 else None

    def _request(self, spec: RequestSpec) -> Request:
        request = Request(spec)
        group = spec.server_group
        if group is not None:
            request.own_host = self._source.instance_hosts({spec.instance_uuid}).get(spec.instance_uuid)
            members = self._groups.seen(group.uuid, self._source.group_hosts(group.uuid))
            if request.own_host in members:
                members[request.own_host] -= 1
            request.group_hosts = {host: count for host, count in members.items() if count > 0}
        named = {uuid for hint in ("same_host", "different_host") for uuid in spec.scheduler_hints.get(hint, [])}
        if named:
            request.instance_hosts = self._source.instance_hosts(named)
        return request

    # For _Search

    def ranked(self, hosts: list[HostState], request: Request) -> Ranking:
        return self._ranker.rank(hosts, request)

    def states(self, candidates: Candidates, nodes: set[str]) -> list[HostState]:
        return self._hosts.states({uuid: candidates.providers[uuid] for uuid in nodes})

    def states_but(self, nodes: set[str]) -> list[HostState]:
        return [host for host in self._hosts.states() if host.node_uuid not in nodes]

    def explain_missing(
        self, ranking: Ranking, nodes: set[str], request: Request, asked: CandidatesRequest, *, closer: bool
    ) -> None:
        missing = self.states_but(nodes)
        offers = look_closer(self._placement, asked) if closer and missing else None
        for host in missing:
            refusal = why_not_offered(host, request, asked, self._decisive, offers)
            ranking.verdicts[host.node_uuid] = verdict_on(host, refusal)

    def claim(self, spec: RequestSpec, instance_uuid: str, how: AllocationRequest, move: MoveClaim | None) -> None:
        """Raises ClaimRefused if there is no room (any more)."""
        if move is None:
            self._placement.claim(instance_uuid, how.allocations, spec.project_id, spec.user_id)
            return
        self._placement.claim_for_move(
            instance_uuid,
            move.migration_uuid,
            how.allocations,
            spec.project_id,
            spec.user_id,
            source_provider=move.source_node,
            source=move.source,
        )

    def remember_pick(self, request: Request, host: str) -> None:
        group = request.spec.server_group
        if group is not None:
            request.group_hosts[host] = request.group_hosts.get(host, 0) + 1
            self._groups.add(group.uuid, host, request.group_hosts[host])

    @property
    def num_alternates(self) -> int:
        return self._max_attempts - 1

    @property
    def default_zone(self) -> str:
        return self._default_zone


class _Search:
    """One request under way: what Placement offers, and the hosts as this request sees them."""

    def __init__(
        self,
        scheduler: Scheduler,
        spec: RequestSpec,
        asked: CandidatesRequest,
        candidates: Candidates,
        request: Request,
    ) -> None:
        self._scheduler = scheduler
        self._spec = spec
        self._asked = asked
        self._candidates = candidates
        self._request = request
        self._offered = by_node(candidates)
        self._states: list[HostState] | None = None

    def rank(self) -> Ranking:
        if self._states is None:
            self._states = self._scheduler.states(self._candidates, set(self._offered))
            unknown = self._offered.keys() - {host.node_uuid for host in self._states}
            if unknown:
                LOG.info("Placement offers providers that no cell has a compute node for: %s", ", ".join(unknown))
        return self._scheduler.ranked(self._states, self._request)

    def place(self, instance_uuid: str, *, alternates: bool, move: MoveClaim | None) -> SchedulingResult:
        """Ranks and claims. Raises NoValidHost."""
        ranking = self.rank()
        selected = self._claim_best(ranking, instance_uuid, move)
        if selected is None:
            self.add_those_not_offered(ranking, closer=True)
            explanation = ranking.explanation()
            raise errors.NoValidHost(
                f"{NO_VALID_HOST} {explanation.summary()}.", details=explanation.summary(with_hosts=True)
            )
        others = alternates_of(
            selected,
            ranking.fitting,
            self._scheduler.num_alternates if alternates else 0,
            lambda host: ranking.verdicts[host.node_uuid].refusal is None,
        )
        self.add_those_not_offered(ranking, closer=False)
        result = SchedulingResult(
            instance_uuid=instance_uuid,
            selected=self._selection(selected),
            alternates=[self._selection(host) for host in others],
            explanation=ranking.explanation(),
        )
        selected.take(self._offered[selected.node_uuid].allocations.get(selected.node_uuid, {}))
        self._scheduler.remember_pick(self._request, selected.host)
        return result

    def add_those_not_offered(self, ranking: Ranking, *, closer: bool) -> None:
        self._scheduler.explain_missing(ranking, set(self._offered), self._request, self._asked, closer=closer)

    def _claim_best(self, ranking: Ranking, instance_uuid: str, move: MoveClaim | None) -> HostState | None:
        for host in ranking.fitting:
            verdict = ranking.verdicts[host.node_uuid]
            try:
                self._scheduler.claim(self._spec, instance_uuid, self._offered[host.node_uuid], move)
            except errors.ClaimRefused as refused:
                LOG.info(
                    "Placement refused the claim of server %s on %s: %s", instance_uuid, host.host, refused.details
                )
                verdict.refusal = Refusal(
                    "was full when it was claimed",
                    "were full when they were claimed",
                    {"Placement": refused.details},
                    filter=PLACEMENT,
                )
                continue
            verdict.selected = True
            return host
        return None

    def _selection(self, host: HostState) -> Selection:
        return Selection(
            host=host.host,
            node_uuid=host.node_uuid,
            hypervisor_hostname=host.record.node.hypervisor_hostname,
            cell_uuid=host.cell_uuid,
            cell_name=host.record.cell_name,
            allocation_request=self._offered[host.node_uuid],
            availability_zone=host.availability_zone(self._scheduler.default_zone),
            limits=dict(self._spec.limits),
        )
