"""All hosts of a large cloud as they were last looked up. A decision chooses from them: it reads no database, and does not ask
Placement about all hosts.

- Hosts come from the cells' databases (`HostCache`), and with one request for all of them from Placement. Both are read again
  in the background from time to time; Placement less often the longer it takes (`SHARE`).
- Verdicts that hold for all requests of a kind (traits, aggregates, capabilities: `filters.lifetimes.lasting`) are kept until a
  host or an aggregate changes. Room, health and company are checked for each request. Hosts are weighed for each request, too,
  but weights that depend on the host alone are kept.
- Choosing a host takes its room here at once (`Choice`), so that concurrent requests see one another's choices.

Others may have changed a host since it was looked up, so the chosen one is checked before it is claimed (`remembered`).
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime

import os_traits

from causeway.clients.placement import CandidatesRequest, PlacementClient, ProviderSummary, RequestGroup
from causeway.clients.placement.types import Resources
from causeway.scheduler.background import Background
from causeway.scheduler.explain import HostVerdict, RefusedHosts
from causeway.scheduler.filters import Request
from causeway.scheduler.fleet_view import View, kind_key
from causeway.scheduler.host_state import SHARE, TOO_OLD, HostCache, HostState, KnownHosts
from causeway.scheduler.request import RequestSpec
from causeway.scheduler.select import Ranker, verdict_on

# Every server needs some of it, so a host that has none left is no candidate.
ANCHOR = "VCPU"
# How many hosts' verdicts are kept with a choice.
BEST = 10


@dataclass
class Choice:
    """A host for a request, and the next best ones. The host's room is taken until `Fleet.release` or `Fleet.claimed`."""

    host: HostState
    taken: Resources
    # The next best of its cell.
    same_cell: list[HostState]
    best: list[HostVerdict]
    fit: int
    refused: list[RefusedHosts] = field(default_factory=list)


class Fleet:
    """Safe to use from many threads."""

    def __init__(self, placement: PlacementClient, hosts: HostCache, ranker: Ranker, *, by_image: bool) -> None:
        """``by_image``: some hosts are reserved for some images."""
        self._placement = placement
        self._hosts = hosts
        self._ranker = ranker
        self._by_image = by_image
        self._lock = threading.Lock()
        self._refreshing = threading.Lock()
        self._background = Background("scheduler-fleet")
        self._view: View | None = None
        # The answer of Placement, when it came (monotonic), and for how many seconds it is used.
        self._offers: dict[str, list[ProviderSummary]] = {}
        self._is_shared = False
        self._offered_at: float | None = None
        self._interval = hosts.max_age
        # The claims since that answer, including running ones: (when, node, resources).
        self._claimed: list[tuple[float, str, Resources]] = []
        self._taken: list[tuple[str, Resources]] = []
        # Node -> the servers that running requests have put there.
        self._picks: Counter[str] = Counter()
        # Kind of requests -> nodes that seemed to fit but did not. Cleared when all hosts are looked up again.
        self._not_offered_nodes: dict[bytes, set[str]] = {}

    def invalidate(self) -> None:
        """Discards all knowledge, so that the next request looks up everything again."""
        with self._lock:
            self._view = None

    def close(self) -> None:
        """Waits for what is being looked up in the background."""
        self._background.wait()

    def choose(
        self, asked: CandidatesRequest, request: Request, *, alternates: int, without: Collection[str]
    ) -> Choice | None:
        """Chooses the best host for a request, except for nodes in ``without`` (uuids). None if no host is known to fit."""
        view = self._fresh_view()
        key = self._key(view, request.spec, asked)
        now = self._hosts.now()
        self._look_at_doubtful(view, now)
        with self._lock:
            view = self._view or view
            ranked = view.rank(
                key, asked, request, now, without=without, not_offered_nodes=self._not_offered_nodes.get(key, ())
            )
            if ranked is None or not ranked.order:
                return None
            order = self._ranker.varied(ranked.order, lambda index: ranked.totals[index])
            host = view.states[ranked.numbers[order[0]]]
            taken = asked.resources
            self._taken.append((host.node_uuid, taken))
            view.hold(host.node_uuid, taken)
            self._pick(view, host.node_uuid, 1)
        same_cell: list[HostState] = []
        for index in order[1:]:
            if len(same_cell) >= alternates:
                break
            other = view.states[ranked.numbers[index]]
            if other.cell_uuid == host.cell_uuid:
                same_cell.append(other)
        shown = list(dict.fromkeys([order[0], *ranked.order[:BEST]]))
        return Choice(
            host=host,
            taken=taken,
            same_cell=same_cell,
            best=[self._verdict(view, ranked.numbers[index], ranked.weights(index)) for index in shown],
            fit=len(ranked.order),
            refused=ranked.refused,
        )

    def release(self, choice: Choice) -> None:
        """Releases the room of a host that was chosen but not claimed."""
        with self._lock:
            self._taken.remove((choice.host.node_uuid, choice.taken))
            self._recount(choice.host.node_uuid)
            self._pick(self._view, choice.host.node_uuid, -1)

    def claimed(self, choice: Choice) -> None:
        """Notes that the host was claimed. It counts as picked by a request under way until `ended`."""
        with self._lock:
            self._taken.remove((choice.host.node_uuid, choice.taken))
            self._claimed.append((time.monotonic(), choice.host.node_uuid, choice.taken))

    def ended(self, choices: list[Choice]) -> None:
        """Notes that the request that claimed these hosts has been answered."""
        with self._lock:
            for choice in choices:
                self._pick(self._view, choice.host.node_uuid, -1)

    def _pick(self, view: View | None, node_uuid: str, more: int) -> None:
        self._picks[node_uuid] += more
        if not self._picks[node_uuid]:
            del self._picks[node_uuid]
        if view is not None:
            view.pick(node_uuid, self._picks.get(node_uuid, 0))

    def note(self, node_uuid: str, providers: list[ProviderSummary], asked_at: float) -> bool:
        """Stores Placement's answer about a host, from ``asked_at`` (monotonic). Returns whether it has less room than known."""
        with self._lock:
            self._claimed = [one for one in self._claimed if one[1] != node_uuid or one[0] >= asked_at]
            self._offers[node_uuid] = providers
            return self._recount(node_uuid)

    def note_not_offered(self, spec: RequestSpec, asked: CandidatesRequest, node_uuid: str) -> None:
        """Notes that Placement does not offer a host for such a request, for whatever reason."""
        with self._lock:
            if self._view is not None:
                self._not_offered_nodes.setdefault(self._key(self._view, spec, asked), set()).add(node_uuid)

    def _key(self, view: View, spec: RequestSpec, asked: CandidatesRequest) -> bytes:
        return kind_key(spec, asked, by_project=view.by_project, by_image=self._by_image)

    def _recount(self, node_uuid: str) -> bool:
        view = self._view
        if view is None or node_uuid not in view.numbers:
            return False
        before = view.room_of(node_uuid)
        view.offer(node_uuid, self._offers.get(node_uuid, []))
        self._hold_all(view, {node_uuid})
        return any(free < before.get(name, 0) for name, free in view.room_of(node_uuid).items())

    def _hold_all(self, view: View, nodes: Collection[str] | None = None) -> None:
        """Counts claims since Placement was asked, and claims that are about to be made."""
        for node, resources in [*((node, resources) for _when, node, resources in self._claimed), *self._taken]:
            if nodes is None or node in nodes:
                view.hold(node, resources)

    def _verdict(self, view: View, number: int, weights: dict[str, float]) -> HostVerdict:
        verdict = verdict_on(view.states[number], None)
        verdict.weights, verdict.total = weights, sum(weights.values())
        return verdict

    def _look_at_doubtful(self, view: View, now: datetime) -> None:
        """Reads hosts again that seem to be down by now, because they may have reported in the meantime."""
        with self._lock:
            doubtful = view.doubtful(now)
        if doubtful:
            known = self._hosts.look_again_at(doubtful)
            with self._lock:
                view.see_again(known, doubtful, now)

    # Looking up

    def _fresh_view(self) -> View:
        known = self._hosts.known()
        with self._lock:
            view, offered_at, interval = self._view, self._offered_at, self._interval
        age = float("inf") if offered_at is None else time.monotonic() - offered_at
        if view is None or age > TOO_OLD * interval:
            return self._refresh_for_all(known)
        if view.loaded_at != known.loaded_at or age > interval:
            self._background.start(lambda: self._refresh(known, with_offers=age > interval))
        return view

    def _refresh_for_all(self, known: KnownHosts) -> View:
        """Looks everything up, because nothing usable is known. The first caller does this, and others wait for it."""
        began = time.monotonic()
        with self._refreshing:
            view = self._view
            if view is None or self._offered_at is None or self._offered_at < began - self._interval:
                view = self._refresh(known, with_offers=True)
            return view

    def _refresh(self, known: KnownHosts, *, with_offers: bool) -> View:
        if with_offers:
            began = time.monotonic()
            offers = self._ask_placement()
            # These share their resources with the hosts of their aggregates.
            is_shared = bool(self._placement.list_providers(required=os_traits.MISC_SHARES_VIA_AGGREGATE))
            with self._lock:
                self._is_shared = is_shared
                self._offers, self._offered_at, self._not_offered_nodes = offers, began, {}
                self._interval = max(self._hosts.max_age, (time.monotonic() - began) / SHARE)
                self._claimed = [one for one in self._claimed if one[0] >= began]
        with self._lock:
            offers, is_shared, before = dict(self._offers), self._is_shared, self._view
        view = View(known, offers, self._ranker, self._hosts, is_shared=is_shared, before=before)
        with self._lock:
            # The knowledge of single hosts that came in the meantime.
            for node, providers in self._offers.items():
                if view.offers.get(node) is not providers:
                    view.offer(node, providers)
            self._hold_all(view)
            for node, picks in self._picks.items():
                view.pick(node, picks)
            self._view = view
        return view

    def _ask_placement(self) -> dict[str, list[ProviderSummary]]:
        """Returns root provider -> its tree, for all hosts that have any resource free. Makes one call."""
        found: dict[str, list[ProviderSummary]] = {}
        asked = CandidatesRequest([RequestGroup(resources={ANCHOR: 1})])
        for provider in self._placement.allocation_candidates(asked).providers.values():
            found.setdefault(provider.root_uuid, []).append(provider)
        return found
