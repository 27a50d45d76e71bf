"""Finds hosts for many servers together: which of them fit at the same time, and why the others don't.

Servers that ask for the same are of one *kind*. What packing does not change (aggregates, traits, capabilities) is checked once
for each host and kind. What it changes (room, and which servers are there) is checked for each server. No room is released, so
a host that is full for a kind stays full.

Largest first is good, but not always best: servers that find no host in one order may fit in another one. `ORDERS` are tried
until all servers have hosts, and the best result is used.
"""

from __future__ import annotations

import copy
import heapq
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from causeway.clients.placement import CandidatesRequest, Capacity
from causeway.clients.placement.kept_disk import DISK
from causeway.scheduler.diagnose import PLACEMENT, Offer, has_none_of, not_in_aggregates, too_little, wrong_traits
from causeway.scheduler.explain import Explanation, Refusal
from causeway.scheduler.filters import Request, first_refusal
from causeway.scheduler.filters.hardware import fitted
from causeway.scheduler.filters.lifetimes import Filters
from causeway.scheduler.host_state import HostState
from causeway.scheduler.in_storage import needed_there
from causeway.scheduler.many import AssignedHost, GroupPlaces, Homeless, Lack, Missing, Mover, Packing
from causeway.scheduler.request import RequestSpec, likeness
from causeway.scheduler.select import verdict_on

_SOFT = {"soft-affinity": -1, "soft-anti-affinity": 1}


@dataclass
class Kind:
    """Servers that ask for the same. ``note``: why no host at all can serve them.

    ``needs_in_storage``: on hosts that share the storage of their disks. ``refusals``: of the hosts (by number) that would not
    do even if they were empty; ``hosts``: the others.
    """

    spec: RequestSpec
    asked: CandidatesRequest
    note: str = ""
    needs: dict[str, int] = field(default_factory=dict)
    needs_in_storage: dict[str, int] = field(default_factory=dict)
    refusals: dict[int, Refusal] = field(default_factory=dict)
    hosts: list[int] = field(default_factory=list)

    @property
    def preferred_cell(self) -> str | None:
        return self.spec.preferred_cell

    def needs_on(self, host: HostState) -> dict[str, int]:
        return self.needs_in_storage if host.shares(self.spec.source_storage) else self.needs


class Packer:
    """Packs servers on hosts. ``hosts`` must have their capacity, and are not changed."""

    def __init__(
        self,
        filters: Filters,
        hosts: list[HostState],
        offers: dict[str, Offer],
        kinds: list[Kind],
        groups: dict[str, GroupPlaces],
        instance_hosts: dict[str, str],
    ) -> None:
        """``offers``: what Placement has, by the node's uuid."""
        self._filters = filters
        self._empty = hosts
        self._offers = offers
        self._sharing: dict[tuple[str, str], list[int]] = {}
        for number, host in enumerate(hosts):
            for name, provider in offers.get(host.node_uuid, Offer()).shared.items():
                self._sharing.setdefault((provider, name), []).append(number)
        self._kinds = kinds
        self._groups = groups
        self._instance_hosts = instance_hosts
        self._total: Counter[str] = Counter()
        for host in hosts:
            self._total.update({name: known.capacity for name, known in host.capacity.items()})
        for kind in kinds:
            self._judge(kind)

    def pack(self, movers: list[Mover], silent_cells: list[str]) -> Packing:
        """``movers``: their ``spec`` is the number of their kind."""
        best: _Attempt | None = None
        for constrained_first, choose in ORDERS:
            attempt = _Attempt(
                self._filters, self._empty, self._kinds, self._groups, self._instance_hosts, choose, self._sharing
            )
            for mover in sorted(movers, key=lambda one: self._turn(one, constrained_first)):
                attempt.place(mover)
            if best is None or len(attempt.homeless) < len(best.homeless):
                best = attempt
            if not any(self._kinds[mover.spec].hosts for mover in best.homeless):
                break
        assert best is not None
        return _Answer(best, silent_cells).packing()

    def _turn(self, mover: Mover, constrained_first: bool) -> tuple[float, float, str]:
        kind = self._kinds[mover.spec]
        size = max((needs / self._total[name] for name, needs in kind.needs.items() if self._total[name]), default=0.0)
        return (len(kind.hosts) if constrained_first else 0, -size, mover.uuid)

    def _judge(self, kind: Kind) -> None:
        """Finds the hosts that would be suitable for a kind of servers if they were empty."""
        kind.needs = kind.asked.resources
        before = kind.spec.source_disk_gb
        kind.needs_in_storage = needed_there(kind.needs, kind.needs.get(DISK, 0) if before is None else before)
        if kind.note:
            return
        request = Request(kind.spec)
        for number, host in enumerate(self._empty):
            refusal = (
                first_refusal(self._filters.decisive, host, request)
                or _of_placement(not_in_aggregates(host, request, kind.asked))
                or _of_placement(_has_none(host, kind.needs_on(host)))
                or _of_placement(wrong_traits(self._offers.get(host.node_uuid, Offer()).traits, kind.asked))
                or first_refusal(self._filters.lasting, host, request)
            )
            if refusal is None:
                kind.hosts.append(number)
            else:
                kind.refusals[number] = refusal


class _Attempt:
    """One order of packing. ``hosts`` are as the servers placed so far leave them."""

    def __init__(
        self,
        filters: Filters,
        hosts: list[HostState],
        kinds: list[Kind],
        groups: dict[str, GroupPlaces],
        instance_hosts: dict[str, str],
        choose: _Choose,
        sharing: dict[tuple[str, str], list[int]],
    ) -> None:
        """``sharing``: (provider, resource class) -> the hosts that share it."""
        self._sharing = {number: (name, hosts) for (_provider, name), hosts in sharing.items() for number in hosts}
        self.filters = filters
        self.hosts = [replace(host, capacity=dict(host.capacity)) for host in hosts]
        self.kinds = kinds
        self.placed: dict[str, int] = {}
        self.homeless: list[Mover] = []
        self._groups = groups
        self._members = {
            uuid: {host: set(servers) for host, servers in group.members.items()} for uuid, group in groups.items()
        }
        self._instance_hosts = dict(instance_hosts)
        self._choose = choose
        # Of each kind the hosts that may have room, in the order of the choice.
        self.queues: dict[int, list[tuple[int, float, int]]] = {}

    def place(self, mover: Mover) -> None:
        kind, request = self.kinds[mover.spec], self.request_of(mover)
        if not mover.takes_room:
            self._place_without_room(mover, kind)
            return
        group = self._groups.get(mover.group or "")
        if group is not None and group.group.policy in _SOFT:
            number = _best_company(self, mover, kind, request, _SOFT[group.group.policy])
        else:
            number = self._choose(self, mover, kind, request)
        if number is None:
            self.homeless.append(mover)
            return
        host = self.hosts[number]
        if kind.spec.numa_topology is not None or kind.spec.pci_requests:
            host.take_hardware(fitted(host, request) if kind.spec.numa_topology else None, kind.spec.pci_requests)
        host.take(kind.needs_on(host))
        name, sharers = self._sharing.get(number, ("", []))
        for other in sharers:
            if name in host.capacity:
                self.hosts[other].capacity[name] = host.capacity[name]
        self.placed[mover.uuid] = number
        self._instance_hosts[mover.uuid] = host.host
        if mover.group in self._members:
            self._members[mover.group].setdefault(host.host, set()).add(mover.uuid)

    def _place_without_room(self, mover: Mover, kind: Kind) -> None:
        """Places a server on a suitable host, preferably one that has room now."""
        choice = min(
            kind.hosts,
            key=lambda each: (self.distance(each, kind), not self.has_room(each, kind), self.load(each, kind), each),
            default=None,
        )
        if choice is None:
            self.homeless.append(mover)
        else:
            self.placed[mover.uuid] = choice

    def request_of(self, mover: Mover) -> Request:
        spec, group = self.kinds[mover.spec].spec, self._groups.get(mover.group or "")
        if group is None:
            return Request(spec, instance_hosts=self._instance_hosts)
        others = {host: len(there - {mover.uuid}) for host, there in self._members[group.group.uuid].items()}
        return Request(
            replace(spec, instance_uuid=mover.uuid, server_group=group.group),
            group_hosts={host: count for host, count in others.items() if count},
            own_host=mover.host,
            instance_hosts=self._instance_hosts,
        )

    def queue(self, mover: Mover, kind: Kind) -> list[tuple[int, float, int]]:
        if mover.spec not in self.queues:
            self.queues[mover.spec] = [
                (self.distance(number, kind), self.load(number, kind), number) for number in kind.hosts
            ]
            # A sorted list is a heap.
            self.queues[mover.spec].sort()
        return self.queues[mover.spec]

    def distance(self, number: int, kind: Kind) -> int:
        """How far a server would go: moves are gentler inside a cell, and between hosts that share the storage of its disks."""
        host, storage = self.hosts[number], kind.spec.preferred_storage
        leaves_cell = kind.preferred_cell is not None and host.cell_uuid != kind.preferred_cell
        return 2 * leaves_cell + (storage is not None and not host.shares(storage))

    def load(self, number: int, kind: Kind) -> float:
        """Returns the share of the host that would be used, of its scarcest resource."""
        host = self.hosts[number]
        return max(
            (
                (host.capacity[name].used + needs) / max(1, host.capacity[name].capacity)
                for name, needs in kind.needs_on(host).items()
            ),
            default=0.0,
        )

    def has_room(self, number: int, kind: Kind) -> bool:
        host = self.hosts[number]
        if any(host.capacity[name].free < needs for name, needs in kind.needs_on(host).items()):
            return False
        return first_refusal(self.filters.room, host, Request(kind.spec)) is None

    def unwanted(self, number: int, mover: Mover, request: Request) -> Refusal | None:
        """Returns why a host that has room is not suitable for this server; None if it is."""
        host = self.hosts[number]
        if host.host == mover.host:
            return Refusal("is where the server is", "are where the server is")
        return first_refusal(self.filters.company, host, request)


_Choose = Callable[[_Attempt, Mover, Kind, Request], int | None]


def _spread(attempt: _Attempt, mover: Mover, kind: Kind, request: Request) -> int | None:
    """The host that is used least. The queue's load of a host may be too low, never too high."""
    queue = attempt.queue(mover, kind)
    aside: list[tuple[int, float, int]] = []
    chosen: int | None = None
    while queue:
        distance, load, number = queue[0]
        now = attempt.load(number, kind)
        if now != load:
            heapq.heapreplace(queue, (distance, now, number))
        elif not attempt.has_room(number, kind):
            heapq.heappop(queue)
        elif attempt.unwanted(number, mover, request) is not None:
            aside.append(heapq.heappop(queue))
        else:
            chosen = number
            break
    for each in aside:
        heapq.heappush(queue, each)
    return chosen


def _first_fit(attempt: _Attempt, mover: Mover, kind: Kind, request: Request) -> int | None:
    """Chooses the first host that has room, so that other hosts keep their room for large servers."""
    queue = attempt.queue(mover, kind)
    full = []
    chosen: int | None = None
    for each in queue:
        if not attempt.has_room(each[2], kind):
            full.append(each)
        elif attempt.unwanted(each[2], mover, request) is None:
            chosen = each[2]
            break
    if full:
        gone = set(full)
        queue[:] = [each for each in queue if each not in gone]
    return chosen


def _best_company(attempt: _Attempt, mover: Mover, kind: Kind, request: Request, sign: int) -> int | None:
    """Of the hosts with room the one with the fewest members of the group (``sign`` 1), or the most (-1)."""
    fit = [
        number
        for number in kind.hosts
        if attempt.has_room(number, kind) and attempt.unwanted(number, mover, request) is None
    ]
    return min(
        fit,
        key=lambda number: (
            sign * request.group_hosts.get(attempt.hosts[number].host, 0),
            attempt.distance(number, kind),
            attempt.load(number, kind),
            number,
        ),
        default=None,
    )


# (Whether servers with the fewest possible hosts come first, else the largest; how a host is chosen.)
ORDERS: list[tuple[bool, _Choose]] = [(False, _spread), (True, _spread), (True, _first_fit), (False, _first_fit)]


class _Answer:
    """Makes the answer of an attempt."""

    def __init__(self, attempt: _Attempt, silent_cells: list[str]) -> None:
        self._attempt = attempt
        self._silent_cells = silent_cells
        self._known: dict[tuple[int, str], Homeless] = {}

    def packing(self) -> Packing:
        attempt = self._attempt
        packing = Packing(silent_cells=self._silent_cells)
        for uuid, number in attempt.placed.items():
            host = attempt.hosts[number]
            packing.places[uuid] = AssignedHost(host.host, host.cell_uuid, host.record.cell_name)
        here = {host.host for host in attempt.hosts}
        for mover in attempt.homeless:
            kind = attempt.kinds[mover.spec]
            alone = mover.group is not None or kind.spec.scheduler_hints or mover.host in here
            key = (mover.spec, mover.uuid if alone else "")
            if key not in self._known:
                self._known[key] = self._homeless(mover, kind)
            packing.homeless[mover.uuid] = self._known[key]
        packing.missing = self._missing(packing.homeless)
        return packing

    def _homeless(self, mover: Mover, kind: Kind) -> Homeless:
        if kind.note:
            return Homeless(why=kind.note, filters=[PLACEMENT])
        attempt, request = self._attempt, self._attempt.request_of(mover)
        refusals = dict(kind.refusals)
        full: list[int] = []
        for number in kind.hosts:
            host = attempt.hosts[number]
            refusal = attempt.unwanted(number, mover, request)
            if refusal is None:
                refusal = _of_placement(too_little(Offer(host.capacity), kind.needs_on(host)))
                if refusal is not None:
                    full.append(number)
                refusal = refusal or first_refusal(attempt.filters.room, host, request)
            if refusal is not None:
                refusals[number] = refusal
        said = Explanation(
            [verdict_on(attempt.hosts[number], refusal) for number, refusal in sorted(refusals.items())],
            silent_cells=self._silent_cells,
        ).summary()
        filters = Counter(refusal.filter for refusal in refusals.values() if refusal.filter)
        return Homeless(said, self._least_lack(full, kind), [name for name, _count in filters.most_common()])

    def _least_lack(self, full: list[int], kind: Kind) -> Lack | None:
        """Returns what the host lacks that comes nearest to having room; None if no host is merely full."""
        lacks = []
        for number in full:
            host = self._attempt.hosts[number]
            needed = kind.needs_on(host)
            shares = {name: (needs - host.capacity[name].free) / needs for name, needs in needed.items()}
            name = max(shares, key=lambda each: shares[each])
            lacks.append((shares[name], Lack(name, host.host, needed[name] - host.capacity[name].free)))
        return min(lacks, key=lambda each: each[0])[1] if lacks else None

    def _missing(self, homeless: dict[str, Homeless]) -> list[Missing]:
        """Returns how much more would have to be free, by resource and by the cells where the servers could go."""
        together: dict[tuple[str, tuple[str, ...]], list[Mover]] = {}
        for mover in self._attempt.homeless:
            lack = homeless[mover.uuid].lack
            if lack is not None:
                kind = self._attempt.kinds[mover.spec]
                cells = {self._attempt.hosts[number].record.cell_name for number in kind.hosts}
                together.setdefault((lack.resource, tuple(sorted(cells))), []).append(mover)
        found = []
        for (resource, names), movers in sorted(together.items()):
            kinds = {mover.spec: self._attempt.kinds[mover.spec] for mover in movers}
            hosts = {number for kind in kinds.values() for number in kind.hosts}
            least = {spec: self._least_needed(kind, resource) for spec, kind in kinds.items()}
            there = [self._attempt.hosts[number].capacity for number in hosts]
            free = [capacity[resource].free for capacity in there if resource in capacity]
            amount = amount_missing([least[mover.spec] for mover in movers], free)
            found.append(Missing(resource, max(1, amount), len(movers), list(names)))
        return found

    def _least_needed(self, kind: Kind, resource: str) -> int:
        hosts = self._attempt.hosts
        return min(kind.needs_on(hosts[number]).get(resource, 0) for number in kind.hosts)


def alike(specs: list[RequestSpec], *, by_project: bool, by_image: bool) -> tuple[list[RequestSpec], list[int]]:
    """The specs that differ for hosts, and for each of ``specs`` the number of its equivalent among them.

    ``by_project``, ``by_image``: some hosts are reserved for some projects, or images.
    """
    numbers: dict[bytes, int] = {}
    found: list[RequestSpec] = []
    of_spec = []
    for spec in specs:
        key = likeness(spec, by_project=by_project, by_image=by_image)
        if key not in numbers:
            numbers[key] = len(found)
            found.append(spec)
        of_spec.append(numbers[key])
    return found, of_spec


def amount_missing(needs: list[int], free: list[int]) -> int:
    """How much more hosts would need to have free if each server went to the host that has most."""
    room = [-max(0, amount) for amount in free]
    heapq.heapify(room)
    missing = 0
    for need in sorted(needs, reverse=True):
        most = -room[0] if room else 0
        missing += max(0, need - most)
        if room:
            heapq.heapreplace(room, -max(0, most - need))
    return missing


def with_capacity(hosts: list[HostState], offers: dict[str, Offer], classes: set[str]) -> list[HostState]:
    """Copies of the hosts with the capacity that Placement has for them; hosts unknown to Placement have nothing free."""
    nothing = {name: Capacity(0, 0) for name in classes}
    found = []
    for host in hosts:
        offer = offers.get(host.node_uuid)
        known = copy.copy(host)
        known.capacity = dict(nothing) if offer is None else dict(offer.capacity)
        found.append(known)
    return found


def _has_none(host: HostState, needs: dict[str, int]) -> Refusal | None:
    for name in sorted(needs):
        if name not in host.capacity:
            return has_none_of(name)
    return None


def _of_placement(refusal: Refusal | None) -> Refusal | None:
    if refusal is not None:
        refusal.filter = PLACEMENT
    return refusal
