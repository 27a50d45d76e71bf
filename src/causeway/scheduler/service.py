"""The scheduler: finds hosts for servers, claims them in Placement, and says why.

1. One query to Placement for everything that has room and fits (`resources`).
2. The hosts of all cells, from a cache (`host_state`); filters, then weighers (`select`).
3. The best host is claimed (`claims`), the next one if Placement refuses; alternates are of the chosen host's cell.
4. The answer has the best ten hosts, and how many others each filter refused; `explain` computes a verdict on every host.

In a large cloud the best host is chosen from what is remembered of all of them (`fleet`), and Placement is only asked about that
one (`remembered`). If that finds no host, and for what memory can't decide, the scheduler works as above.

Many servers that are to move later are packed in memory, with the same filters and words; nothing is claimed (`many`, `packing`).

A boot costs two Placement calls, a move two. A claim is atomic in Placement, so two requests that race for the last slot
are decided there. Placement does not know server groups: each scheduler respects them on its own (`group_picks`), and the
conductor checks them again when it claims a host (`causeway.hosts.groups`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from oslo_config.cfg import ConfigOpts

from causeway import errors, metrics
from causeway.clients.placement import CandidatesRequest, PlacementClient
from causeway.model.orders import Awaited, Order
from causeway.scheduler.claims import Claims
from causeway.scheduler.diagnose import PLACEMENT, Offer, look_closer
from causeway.scheduler.explain import Explanation, Refusal
from causeway.scheduler.filters import Request, first_refusal
from causeway.scheduler.filters.aggregates import AggregateInstanceExtraSpecsFilter, AggregateMultiTenancyIsolation
from causeway.scheduler.filters.compute import ComputeFilter
from causeway.scheduler.filters.lifetimes import Filters
from causeway.scheduler.fleet import Fleet
from causeway.scheduler.group_picks import GroupPicks
from causeway.scheduler.host_state import HostCache, HostRecord, HostSource
from causeway.scheduler.many import Packing, PackRequest
from causeway.scheduler.packing import Kind, Packer, alike, with_capacity
from causeway.scheduler.remembered import RememberedSearch, can_be_decided
from causeway.scheduler.request import MoveClaim, RequestSpec, SchedulingResult
from causeway.scheduler.resources import Prefilters, candidates_request, tenants_of
from causeway.scheduler.search import NO_VALID_HOST, Search, Tools
from causeway.scheduler.select import Ranker, verdict_on

if TYPE_CHECKING:
    from causeway.context import RequestContext

LOG = logging.getLogger(__name__)

DEFAULT_SERVICE_DOWN_TIME = 60
LASTING = (AggregateInstanceExtraSpecsFilter, AggregateMultiTenancyIsolation)
DEFAULT_AVAILABILITY_ZONE = "nova"


class Scheduler:
    """Safe to use from many threads. Holds a cache of hosts, and the choices that the databases and Placement do not show yet."""

    def __init__(
        self,
        conf: ConfigOpts,
        placement: PlacementClient,
        source: HostSource,
        awaited: Callable[[Order], Awaited] | None = None,
    ) -> None:
        """``conf`` has the options of `causeway.conf.scheduler`; service_down_time and default_availability_zone are read
        from [DEFAULT] if they are registered there. ``awaited``: whether an operation still waits for the answer to an order;
        None: always.

        Raises ValueError if the configuration names filters or weighers that do not exist.
        """
        options = conf.scheduler
        self._placement = placement
        self._source = source
        default_zone: str = getattr(conf, "default_availability_zone", DEFAULT_AVAILABILITY_ZONE)
        self._prefilters = Prefilters(
            max_placement_results=options.max_placement_results,
            limit_tenants=options.limit_tenants_to_placement_aggregate,
            aggregate_required_for_tenants=options.placement_aggregate_required_for_tenants,
            image_type_support=options.query_placement_for_image_type_support,
            image_metadata=options.image_metadata_prefilter,
            isolated_aggregates=options.enable_isolated_aggregate_filtering,
            default_availability_zone=default_zone,
        )
        self._hosts = HostCache(
            source,
            max_age=options.host_state_max_age,
            service_down_time=getattr(conf, "service_down_time", DEFAULT_SERVICE_DOWN_TIME),
            many=options.ask_for_all_up_to,
        )
        self._ask_for_all_up_to: int = options.ask_for_all_up_to
        self._groups = GroupPicks()
        self._isolates_images = bool(conf.filter_scheduler.isolated_images)
        ranker = Ranker(conf)
        self._fleet = Fleet(placement, self._hosts, ranker, by_image=self._isolates_images)
        self._tools = Tools(
            placement=placement,
            claims=Claims(placement, awaited),
            hosts=self._hosts,
            ranker=ranker,
            decisive=[
                ranker.requested,
                ComputeFilter(conf),
                # A host that is not meant for a request does not become suitable when it has room again.
                *(one for one in ranker.filters if isinstance(one, LASTING)),
            ],
            groups=self._groups,
            num_alternates=options.max_attempts - 1,
            default_zone=default_zone,
        )

    def close(self) -> None:
        """Waits for what is being looked up in the background."""
        self._hosts.close()
        self._fleet.close()

    def invalidate(self) -> None:
        """Has the next request read hosts again, because hosts, services, cells or aggregates have changed."""
        self._hosts.invalidate()
        self._fleet.invalidate()

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

        ``move``: the claim gives what the server holds to the migration in the same call. If one server gets no host, the
        claims of the others are released. Raises NoValidHost, with the explanation in one sentence (host names in ``details``).
        """
        with metrics.Timed(metrics.SCHEDULER_SECONDS) as timed:
            timed.outcome = "placed"
            try:
                found = self._select(spec, instance_uuids, alternates, move)
            except errors.NoValidHost:
                timed.failure = "no_valid_host"
                raise
        for result in found:
            LOG.info(
                "Server %s: host %s, and %d others", result.instance_uuid, result.selected.host, len(result.alternates)
            )
        return found

    def _select(
        self, spec: RequestSpec, instance_uuids: list[str], alternates: bool, move: MoveClaim | None
    ) -> list[SchedulingResult]:
        with self._groups.turn(spec.server_group.uuid if spec.server_group else None):
            began = time.monotonic()
            try:
                return self._place(spec, instance_uuids, alternates, move)
            except errors.NoValidHost:
                # The refusal may be due to old knowledge of hosts and aggregates.
                if not self._hosts.look_again_unless_looked_since(began):
                    raise
            return self._place(spec, instance_uuids, alternates, move)

    def explain(self, context: RequestContext | None, spec: RequestSpec) -> Explanation:  # noqa: ARG002
        """What `select_destinations` would say of every host of every cell; changes nothing."""
        # An explanation must be up to date, and may take longer.
        self._hosts.invalidate()
        try:
            search = self._search(spec)
        except errors.NoValidHost as none:
            # The request is invalid, so there is no query: every host is refused for that reason.
            return self._all_refused(spec, _reason(none))
        ranking = search.rank()
        if ranking.fitting:
            ranking.verdicts[ranking.fitting[0].node_uuid].selected = True
        search.add_those_not_offered(ranking, closer=True)
        return ranking.explanation(self._hosts.silent_cells())

    def pack(self, context: RequestContext | None, request: PackRequest) -> Packing:  # noqa: ARG002
        """Hosts for many servers together, none of which is claimed; Placement is asked once for each resource class."""
        self._hosts.invalidate()
        specs, of_spec = alike(
            request.specs,
            by_project=any(tenants_of(aggregate) for aggregate in self._hosts.aggregates()),
            by_image=self._isolates_images,
        )
        kinds = [self._kind(spec) for spec in specs]
        classes = {name for kind in kinds for name in kind.asked.resources}
        offers: dict[str, Offer] = {}
        for name in sorted(classes):
            try:
                look_closer(self._placement, [name], offers)
            except errors.ServiceRefused as unknown:
                LOG.info("Placement refused to list hosts with %s: %s", name, unknown.details)
        wanted = set(request.hosts)
        hosts = [host for host in self._hosts.states() if host.host in wanted]
        packer = Packer(
            Filters(self._tools.decisive, self._tools.ranker.filters),
            with_capacity(hosts, offers, classes),
            offers,
            kinds,
            request.groups,
            request.instance_hosts,
        )
        movers = [replace(mover, spec=of_spec[mover.spec]) for mover in request.movers]
        return packer.pack(movers, self._hosts.silent_cells())

    def _kind(self, spec: RequestSpec) -> Kind:
        try:
            return Kind(spec, candidates_request(spec, self._hosts.aggregates(), self._prefilters))
        except errors.NoValidHost as none:
            return Kind(spec, CandidatesRequest([]), note=_reason(none))

    def _all_refused(self, spec: RequestSpec, reason: str) -> Explanation:
        request, unfit = self._request(spec), "can't serve this request"
        verdicts = [
            verdict_on(
                host,
                first_refusal(self._tools.decisive, host, request)
                or Refusal(unfit, unfit, {"because": reason}, filter=PLACEMENT),
            )
            for host in self._hosts.states()
        ]
        return Explanation(hosts=verdicts, note=reason, silent_cells=self._hosts.silent_cells())

    def _place(
        self, spec: RequestSpec, instance_uuids: list[str], alternates: bool, move: MoveClaim | None
    ) -> list[SchedulingResult]:
        results: list[SchedulingResult] = []
        remembered: RememberedSearch | None = None
        try:
            asked, request = self._asked(spec), self._request(spec)
            remembered = self._remembered_search(spec, asked, request)
            search: Search | None = None
            for instance_uuid in instance_uuids:
                found = None
                if remembered is not None and search is None:
                    found = remembered.place(instance_uuid, alternates=alternates, move=move)
                if found is None:
                    search = search or self._search_of_all(spec, asked, request)
                    found = search.place(instance_uuid, alternates=alternates, move=move)
                results.append(found)
        except Exception:
            for result in results:
                self._placement.delete_allocations(result.instance_uuid)
            raise
        finally:
            if remembered is not None:
                remembered.close()
        return results

    def _remembered_search(
        self, spec: RequestSpec, asked: CandidatesRequest, request: Request
    ) -> RememberedSearch | None:
        """Returns None if all hosts must be looked up: there are few, or remembered knowledge can't decide."""
        if len(self._hosts.known().records) <= self._ask_for_all_up_to or not can_be_decided(spec, asked):
            return None
        return RememberedSearch(self._tools, self._fleet, spec, asked, request)

    def _search(self, spec: RequestSpec) -> Search:
        return self._search_of_all(spec, self._asked(spec), self._request(spec))

    def _asked(self, spec: RequestSpec) -> CandidatesRequest:
        return candidates_request(
            spec, self._hosts.aggregates(), self._prefilters, in_tree=self._requested_provider(spec)
        )

    def _search_of_all(self, spec: RequestSpec, asked: CandidatesRequest, request: Request) -> Search:
        return Search(self._tools, spec, asked, self._placement.allocation_candidates(asked), request)

    def _requested_provider(self, spec: RequestSpec) -> str | None:
        """Returns the provider of the one requested host; None if any host is possible, or the host has several nodes."""
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
            try:
                members = self._source.group_members(group.uuid)
                by_host = self._groups.seen(group.uuid, members, self._source.group_hosts(members))
            except errors.ServerGroupNotFound:
                # A group may be deleted before its servers, which may then go anywhere.
                by_host = {}
            others = {host: len(uuids - {spec.instance_uuid}) for host, uuids in by_host.items()}
            request.group_hosts = {host: count for host, count in others.items() if count}
        named = {uuid for hint in ("same_host", "different_host") for uuid in spec.scheduler_hints.get(hint, [])}
        if named:
            request.instance_hosts = self._source.instance_hosts(named)
        return request


def _reason(none: errors.NoValidHost) -> str:
    return none.message.removeprefix(NO_VALID_HOST).strip().rstrip(".")
