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


@dataclass
class Offer:
    """The resources and traits that all providers of a host have together."""

    capacity: dict[str, Capacity] = field(default_factory=dict)
    traits: set[str] = field(default_factory=set)


def look_closer(placement: PlacementClient, classes: Iterable[str]) -> dict[str, Offer]:
    """Returns root provider -> its resources, for hosts with any of these resource classes. One call for each class."""
    offers: dict[str, Offer] = {}
    for resource_class in sorted(classes):
        relaxed = CandidatesRequest([RequestGroup(resources={resource_class: 1})])
        offers |= _offers(placement.allocation_candidates(relaxed))
    return offers


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
        refusal = too_little(offer, asked) or wrong_traits(offer.traits if offer is not None else set(), asked)
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


def too_little(offer: Offer | None, asked: CandidatesRequest) -> Refusal | None:
    """Returns what a host lacks or has too little of; None if it has enough of everything."""
    if offer is None:
        return Refusal("has nothing free", "have nothing free")
    for name, needs in sorted(asked.resources.items()):
        known = offer.capacity.get(name)
        if known is None:
            return Refusal(f"has no {name}", f"have no {name}")
        if known.free < needs:
            return Refusal(f"is full on {name}", f"are full on {name}", needs=needs, free=max(0, known.free))
    return None


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
