"""The hosts of a large cloud at one time: numbered, with a column for each thing that filters and weighers need of them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from causeway.clients.placement import CandidatesRequest, ProviderSummary
from causeway.clients.placement.types import Resources
from causeway.model.flavor import Flavor
from causeway.model.host import PASSING_CAPABILITIES
from causeway.scheduler.diagnose import PLACEMENT, has_none_of, not_in_aggregates, wrong_traits
from causeway.scheduler.explain import Refusal, RefusedHosts
from causeway.scheduler.filters import HostFilter, Request, first_refusal
from causeway.scheduler.filters.compute import ComputeFilter, healthy_until
from causeway.scheduler.filters.lifetimes import COMPANY, PASSING, lasting
from causeway.scheduler.filters.limits import NumInstancesFilter
from causeway.scheduler.host_state import HostCache, KnownHosts
from causeway.scheduler.request import RequestSpec, likeness
from causeway.scheduler.resources import tenants_of
from causeway.scheduler.select import Ranker

# Kinds of requests whose verdicts are kept.
KINDS = 256
# A request for weighers that look at the host alone.
_ANYBODY = Request(RequestSpec("", "", "", Flavor("", "", 0, 0, 0)))


@dataclass
class Ranked:
    """``order``: indices of ``numbers`` (hosts that fit) and of ``totals`` (their weights), best first."""

    numbers: list[int]
    totals: list[float]
    order: list[int]
    refused: list[RefusedHosts]
    # Weigher, raw weights of the numbers, the least of them, their span, the multiplier (of each host if they differ).
    parts: list[tuple[str, list[float], float, float, float | list[float]]]

    def weights(self, index: int) -> dict[str, float]:
        return {
            name: (raw[index] - least) / span * (by if isinstance(by, float) else by[self.numbers[index]])
            for name, raw, least, span, by in self.parts
        }


@dataclass
class _Kind:
    """Verdicts of hosts on all requests of a kind. ``is_undecided``: other providers may have what some hosts lack."""

    fits: list[int] = field(default_factory=list)
    refused: dict[str, RefusedHosts] = field(default_factory=dict)
    is_undecided: bool = False


class View:
    """Not safe to use from several threads at once: `Fleet` locks it."""

    def __init__(
        self,
        known: KnownHosts,
        offers: dict[str, list[ProviderSummary]],
        ranker: Ranker,
        hosts: HostCache,
        *,
        is_shared: bool,
        before: View | None,
    ) -> None:
        """``is_shared``: some providers share resources with hosts that don't have these themselves."""
        self.loaded_at = known.loaded_at
        self.offers = offers
        self._ranker = ranker
        self._hosts = hosts
        self._down_time = timedelta(seconds=hosts.service_down_time)
        self._lasting = lasting(ranker.filters)
        self._compute = next((one for one in ranker.filters if isinstance(one, ComputeFilter)), None)
        now = hosts.now()
        nodes = [uuid for uuid in known.records if uuid in offers]
        self.states = [hosts.state_of(known, uuid, {}, now) for uuid in nodes]
        self.numbers = {uuid: number for number, uuid in enumerate(nodes)}
        self._is_shared = is_shared
        self.by_project = any(tenants_of(aggregate) for aggregate in known.aggregates)
        self._absent = len(known.records) - len(nodes)
        self._closed_cells = any(host.record.cell_disabled for host in self.states)
        self._up_until = [healthy_until(host, self._down_time) for host in self.states]
        self._down = {number for number, until in enumerate(self._up_until) if until < now}
        self._traits = [frozenset[str]().union(*(one.traits for one in offers[uuid])) for uuid in nodes]
        self._free: dict[str, list[int]] = {}
        self._raw: list[list[float]] = [[] for _weigher in ranker.weighers]
        for uuid in nodes:
            self._set_capacity(uuid, offers[uuid])
        for number in range(len(nodes)):
            self._count(number)
        self._multipliers = [self._multipliers_of(place) for place in range(len(ranker.weighers))]
        self._facts = [self._facts_of(number) for number in range(len(nodes))]
        same = before is not None and before._facts == self._facts and before._is_shared == is_shared
        self._kinds: OrderedDict[bytes, _Kind] = before._kinds if before is not None and same else OrderedDict()

    # What is known of hosts

    def room_of(self, node_uuid: str) -> dict[str, int]:
        return {name: known.free for name, known in self.states[self.numbers[node_uuid]].capacity.items()}

    def offer(self, node_uuid: str, providers: list[ProviderSummary]) -> None:
        """Sets what Placement says of a host now."""
        number = self.numbers.get(node_uuid)
        if number is not None:
            self.offers[node_uuid] = providers
            self._set_capacity(node_uuid, providers)
            self._count(number)

    def hold(self, node_uuid: str, resources: Resources) -> None:
        """Counts what a server on a host holds."""
        number = self.numbers.get(node_uuid)
        if number is not None:
            self.states[number].hold(resources)
            self._count(number)

    def pick(self, node_uuid: str, picks: int) -> None:
        """Sets how many servers of requests under way go to a host."""
        number = self.numbers.get(node_uuid)
        if number is not None:
            self.states[number].num_picked = picks
            self._count(number)

    def doubtful(self, now: datetime) -> set[str]:
        """Returns hosts that were up when they were read, but count as down now unless they have reported since."""
        return {
            self.states[number].node_uuid
            for number, until in enumerate(self._up_until)
            if until < now and number not in self._down
        }

    def see_again(self, known: KnownHosts, node_uuids: Collection[str], now: datetime) -> None:
        for uuid in node_uuids:
            number, record = self.numbers.get(uuid), known.records.get(uuid)
            # The state of a host that was not read again stays unknown.
            if number is not None and record is not None and record is not self.states[number].record:
                self.states[number].record = record
                self._up_until[number] = healthy_until(self.states[number], self._down_time)
                if self._up_until[number] < now:
                    self._down.add(number)

    def _set_capacity(self, node_uuid: str, providers: list[ProviderSummary]) -> None:
        """Sets a host's capacity: that of the node itself, as in Placement's answer to a single request."""
        own = next((one.resources for one in providers if one.uuid == node_uuid), {})
        self.states[self.numbers[node_uuid]].capacity = dict(own)

    def _count(self, number: int) -> None:
        """Updates the columns that change with the servers on a host."""
        host, size = self.states[number], len(self.states)
        for name, known in host.capacity.items():
            if name not in self._free:
                self._free[name] = [-1] * size
            self._free[name][number] = known.free
        for weigher, column in zip(self._ranker.weighers, self._raw, strict=True):
            if weigher.of_host_alone:
                if not column:
                    column.extend([0.0] * size)
                column[number] = weigher.weigh(host, _ANYBODY)

    def _multipliers_of(self, place: int) -> float | list[float]:
        weigher = self._ranker.weighers[place]
        known: dict[tuple[int, ...], float] = {}
        found = []
        for host in self.states:
            where = tuple(map(id, host.aggregates))
            if where not in known:
                known[where] = weigher.multiplier(host)
            found.append(known[where])
        return found[0] if found and len(set(known.values())) == 1 else found

    def _facts_of(self, number: int) -> tuple[Any, ...]:
        """The facts that kept verdicts depend on."""
        host = self.states[number]
        node = host.record.node
        return (
            node.uuid,
            node.host,
            node.hypervisor_hostname,
            node.hypervisor_type,
            node.hypervisor_version,
            node.host_ip,
            node.vcpus,
            node.cpu_info,
            node.supported_instances,
            {key: value for key, value in node.capabilities.items() if key not in PASSING_CAPABILITIES},
            host.cell_uuid,
            [(one.uuid, one.metadata) for one in host.aggregates],
            self._traits[number],
            set(host.capacity),
        )

    # Ranking

    def rank(
        self,
        key: bytes,
        asked: CandidatesRequest,
        request: Request,
        now: datetime,
        *,
        without: Collection[str],
        not_offered_nodes: Collection[str],
    ) -> Ranked | None:
        """The hosts that fit, best first, except for those ``without``. ``not_offered_nodes``: Placement does not offer these.

        None if what is asked for can't be judged from what is known.
        """
        kind = self._kind(key, asked, request)
        if kind.is_undecided:
            return None
        refused = {name: replace(group) for name, group in kind.refused.items()}
        numbers = kind.fits
        for excluded, refusal in ((without, None), (not_offered_nodes, not_offered())):
            left_out = {self.numbers[uuid] for uuid in excluded if uuid in self.numbers}
            left = [number for number in numbers if number not in left_out] if left_out else numbers
            if refusal is not None and len(left) < len(numbers):
                _count(refused, refusal, len(numbers) - len(left))
            numbers = left
        numbers = self._with_room(numbers, asked.resources, refused)
        numbers = self._healthy(numbers, now, request, refused)
        numbers = self._passing(numbers, request, refused)
        if self._absent:
            nothing = Refusal("has nothing free", "have nothing free", filter=PLACEMENT)
            _count(refused, nothing, self._absent)
        totals, parts = self._weigh(numbers, request)
        order = sorted(range(len(numbers)), key=totals.__getitem__, reverse=True)
        return Ranked(numbers, totals, order, list(refused.values()), parts)

    def _kind(self, key: bytes, asked: CandidatesRequest, request: Request) -> _Kind:
        kind = self._kinds.get(key)
        if kind is None:
            kind = self._kinds[key] = self._judge(asked, request)
            while len(self._kinds) > KINDS:
                self._kinds.popitem(last=False)
        self._kinds.move_to_end(key)
        return kind

    def _judge(self, asked: CandidatesRequest, request: Request) -> _Kind:
        kind = _Kind()
        for number, host in enumerate(self.states):
            refusal = first_refusal(self._lasting, host, request)
            if refusal is None:
                refusal = not_in_aggregates(host, request, asked) or wrong_traits(set(self._traits[number]), asked)
                missing = asked.resources.keys() - host.capacity.keys()
                if refusal is None and missing:
                    below = {name for one in self.offers[host.node_uuid] for name in one.resources}
                    kind.is_undecided = kind.is_undecided or self._is_shared or missing <= below
                    name = min(missing)
                    refusal = has_none_of(name)
                if refusal is not None:
                    refusal.filter = PLACEMENT
            if refusal is None:
                kind.fits.append(number)
            else:
                _count(kind.refused, refusal)
        return kind

    def _with_room(self, numbers: list[int], needs: Resources, refused: dict[str, RefusedHosts]) -> list[int]:
        for name, amount in needs.items():
            free = self._free.get(name)
            if free is None:
                return []
            fitting = [number for number in numbers if free[number] >= amount]
            if len(fitting) < len(numbers):
                most = max(free[number] for number in numbers if free[number] < amount)
                full = Refusal(f"is full on {name}", f"are full on {name}", needs=amount, free=most, filter=PLACEMENT)
                _count(refused, full, len(numbers) - len(fitting))
            numbers = fitting
        return numbers

    def _healthy(
        self, numbers: list[int], now: datetime, request: Request, refused: dict[str, RefusedHosts]
    ) -> list[int]:
        if self._compute is None:
            return numbers
        found = []
        for number in numbers:
            if self._up_until[number] >= now:
                found.append(number)
                continue
            host = self.states[number]
            host.is_up = self._hosts.is_up(host.record.service, now)
            refusal = first_refusal([self._compute], host, request)
            if refusal is None:
                found.append(number)
            else:
                _count(refused, refusal)
        return found

    def _passing(self, numbers: list[int], request: Request, refused: dict[str, RefusedHosts]) -> list[int]:
        """Applies filters that depend on this single request, or on the present load of hosts."""
        filters = self._concerned(request)
        if not filters:
            return numbers
        found = []
        for number in numbers:
            refusal = first_refusal(filters, self.states[number], request)
            if refusal is None:
                found.append(number)
            else:
                _count(refused, refusal)
        return found

    def _concerned(self, request: Request) -> list[HostFilter]:
        spec = request.spec
        filters: list[HostFilter] = []
        if spec.requested_destination is not None or spec.ignore_hosts or self._closed_cells:
            filters.append(self._ranker.requested)
        has_company = spec.server_group is not None or bool(spec.scheduler_hints)
        wanted = (NumInstancesFilter, *PASSING, *(COMPANY if has_company else ()))
        return filters + [one for one in self._ranker.filters if isinstance(one, wanted)]

    def _weigh(
        self, numbers: list[int], request: Request
    ) -> tuple[list[float], list[tuple[str, list[float], float, float, float | list[float]]]]:
        """The same as `weighers.weigh`, but applies one weigher to all hosts before the next one."""
        totals = [0.0] * len(numbers)
        parts = []
        if not numbers:
            return totals, []
        for place, weigher in enumerate(self._ranker.weighers):
            by = self._multipliers[place]
            if by == 0.0 or not weigher.concerns(request):
                continue
            if weigher.of_host_alone:
                column = self._raw[place]
                raw = [column[number] for number in numbers]
            else:
                raw = [weigher.weigh(self.states[number], request) for number in numbers]
            least = min(raw)
            span = max(raw) - least
            if span <= 0:
                continue
            if isinstance(by, float):
                totals = [total + (one - least) / span * by for total, one in zip(totals, raw, strict=True)]
            else:
                factors = (by[number] for number in numbers)
                scored = zip(totals, raw, factors, strict=True)
                totals = [total + (one - least) / span * factor for total, one, factor in scored]
            parts.append((weigher.name, raw, least, span, by))
        return totals, parts


def kind_key(spec: RequestSpec, asked: CandidatesRequest, *, by_project: bool, by_image: bool) -> bytes:
    """Returns a key that is the same for requests on which hosts give the same verdict, apart from room, health and company."""
    lasting_part = replace(
        spec,
        is_new=False,
        num_instances=1,
        server_group=None,
        scheduler_hints={},
        requested_destination=None,
        ignore_hosts=[],
        limits={},
    )
    query = "&".join("=".join(pair) for pair in asked.to_query())
    return likeness(lasting_part, by_project=by_project, by_image=by_image) + query.encode()


def not_offered() -> Refusal:
    return Refusal("did not fit when it was looked at", "did not fit when they were looked at", filter=PLACEMENT)


def _count(refused: dict[str, RefusedHosts], refusal: Refusal, hosts: int = 1) -> None:
    group = refused.get(refusal.many)
    if group is None:
        group = refused[refusal.many] = RefusedHosts(refusal.filter, refusal.one, refusal.many)
    group.count(refusal, hosts)
