"""Why Placement did not offer a host.

Placement's answer names the hosts that can serve a request, and says nothing of the others. What follows from what
the scheduler knows anyway is always explained; amounts and traits need one more query per resource class, which is made only
when no host was found or somebody asks for an explanation.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from causeway.clients.placement import Candidates, CandidatesRequest, Capacity, PlacementClient, RequestGroup
from causeway.scheduler.explain import Refusal
from causeway.scheduler.filters import HostFilter, Request, first_refusal
from causeway.scheduler.host_state import HostState
from causeway.scheduler.resources import DISABLED

PLACEMENT = "Placement"
# What providers may share with hosts, and what all hosts have themselves.
_SHAREABLE, _OWN = "DISK_GB", "MEMORY_MB"


@dataclass
class Offer:
    """The resources and traits that all providers of a host have together.

    ``shared``: resource class -> the provider that shares it with the host, whose capacity then is in ``capacity``.
    """

    capacity: dict[str, Capacity] = field(default_factory=dict)
    shared: dict[str, str] = field(default_factory=dict)
    traits: set[str] = field(default_factory=set)


def look_closer(
    placement: PlacementClient, classes: Iterable[str], offers: dict[str, Offer] | None = None
) -> dict[str, Offer]:
    """Returns root provider -> its resources, for hosts with any of these resource classes. One call for each class.

    ``offers``: earlier answers, to which these are added.
    """
    offers = {} if offers is None else offers
    for resource_class in sorted(classes):
        resources = {resource_class: 1}
        if resource_class == _SHAREABLE:
            # Only beside what a host has itself does Placement say with which hosts a provider shares its disk.
            resources[_OWN] = 1
        relaxed = CandidatesRequest([RequestGroup(resources=resources)])
        _add(offers, _offers(placement.allocation_candidates(relaxed)))
    return offers


def _add(offers: dict[str, Offer], more: dict[str, Offer]) -> None:
    """Adds newer offers; what is shared with a host is in one of the answers only."""
    for root, offer in more.items():
        before = offers.get(root)
        if before is not None:
            for name, provider in before.shared.items():
                if name not in offer.capacity:
                    offer.capacity[name], offer.shared[name] = before.capacity[name], provider
        offers[root] = offer


def why_not_offered(
    host: HostState,
    request: Request,
    asked: CandidatesRequest,
    decisive: list[HostFilter],
    offers: dict[str, Offer] | None,
) -> Refusal:
    """Why a host is not among the candidates. ``decisive``: filters whose verdict says more than "full" does.

    ``offers``: from `look_closer`; None if that was not called.
    """
    refusal = first_refusal(decisive, host, request) or not_in_aggregates(host, request, asked)
    if refusal is None and offers is not None:
        offer = offers.get(host.node_uuid)
        refusal = too_little(offer, asked.resources) or wrong_traits(
            offer.traits if offer is not None else set(), asked
        )
    if refusal is None:
        refusal = Refusal("does not have what was asked for", "do not have what was asked for")
    refusal.filter = refusal.filter or PLACEMENT
    return refusal


def _offers(candidates: Candidates) -> dict[str, Offer]:
    offers: dict[str, Offer] = {}
    for provider in candidates.providers.values():
        offer = offers.setdefault(provider.root_uuid, Offer())
        offer.traits |= provider.traits
        for name, more in provider.resources.items():
            known = offer.capacity.get(name, Capacity(0, 0))
            offer.capacity[name] = Capacity(known.capacity + more.capacity, known.used + more.used)
    for request in candidates.requests:
        of_node = offers[candidates.root_of(request)]
        for uuid, resources in request.allocations.items():
            for name in resources.keys() - of_node.capacity.keys():
                of_node.capacity[name], of_node.shared[name] = candidates.providers[uuid].resources[name], uuid
    return offers


def not_in_aggregates(host: HostState, request: Request, asked: CandidatesRequest) -> Refusal | None:
    of_host = {aggregate.uuid for aggregate in host.aggregates}
    for group in asked.groups:
        if all(of_host & wanted for wanted in group.member_of) and not of_host & group.forbidden_aggregates:
            continue
        zone = request.spec.availability_zone
        zones = {aggregate.availability_zone for aggregate in host.aggregates if aggregate.availability_zone}
        # The default zone has no aggregate to be a member of.
        if zone is not None and zone not in zones and (zones or group.member_of):
            return Refusal(
                f"is not in availability zone {zone}",
                f"are not in availability zone {zone}",
                {"zone": ", ".join(sorted(zones)) or "the default one"},
            )
        names = ", ".join(sorted(aggregate.name for aggregate in host.aggregates)) or "none"
        return Refusal("is not in the right host aggregates", "are not in the right host aggregates", {"is in": names})
    return None


def too_little(offer: Offer | None, needed: dict[str, int]) -> Refusal | None:
    """Returns what a host lacks or has too little of; None if it has enough of everything."""
    if offer is None:
        return Refusal("has nothing free", "have nothing free")
    for name, needs in sorted(needed.items()):
        known = offer.capacity.get(name)
        if known is None:
            return has_none_of(name)
        if known.free < needs:
            return Refusal(f"is full on {name}", f"are full on {name}", needs=needs, free=max(0, known.free))
    return None


def has_none_of(resource_class: str) -> Refusal:
    """The refusal of a host without a resource class, or whose class another provider shares and has none left."""
    more = " free" if resource_class == _SHAREABLE else ""
    return Refusal(f"has no {resource_class}{more}", f"have no {resource_class}{more}")


def wrong_traits(traits: set[str], asked: CandidatesRequest) -> Refusal | None:
    """Returns the forbidden trait that a host has, or the required one that it lacks; None if its traits are suitable."""
    forbidden = asked.root_forbidden.union(*(group.forbidden for group in asked.groups))
    required = asked.root_required.union(*(group.required for group in asked.groups))
    if DISABLED in traits & forbidden:
        return Refusal("is disabled", "are disabled")
    for trait in sorted(traits & forbidden):
        return Refusal(f"has the trait {trait}, which is forbidden", f"have the trait {trait}, which is forbidden")
    for trait in sorted(required - traits):
        has = ", ".join(sorted(traits)) or "none"
        return Refusal(f"lacks the trait {trait}", f"lack the trait {trait}", {"traits": has})
    return None
