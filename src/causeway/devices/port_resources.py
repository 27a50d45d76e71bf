"""Attaches and detaches ports that ask for resources.

The allocations of a server include the resources of its ports. The ports' binding profiles name the providers.
"""

from __future__ import annotations

from causeway import errors
from causeway.clients.placement.types import Allocations, CandidatesRequest, Resources
from causeway.clients.port_owners import PortOwner
from causeway.clients.port_requests import ALLOCATION, PortRequest, requests_of, subtrees, with_allocation
from causeway.context import RequestContext
from causeway.model.instance import Instance
from causeway.model.network import Vif
from causeway.running.services import ConductorServices
from causeway.store.cell import hosts
from causeway.store.database import Database

# The beginning of resource classes that only ports ask for.
OF_PORTS = "NET_"


def claim(services: ConductorServices, database: Database, instance: Instance, vif: Vif, request: PortRequest) -> None:
    """Allocates a port's resources for the server on its host, and notes the provider in the port's profile.

    Raises BadRequest if there is not enough.
    """
    (node,) = hosts.list_nodes(database, host=instance.host)
    for group in request.groups:
        group.in_tree = node.uuid
    several = len(request.groups) > 1
    offered = services.placement.allocation_candidates(
        CandidatesRequest(request.groups, group_policy="none" if several else None, same_subtree=subtrees([request]))
    )
    refusal = (
        f"Failed to allocate additional resources to instance {instance.uuid} to satisfy the resource request of port"
        f" {vif.id}: its host has not enough left."
    )
    if not offered.requests:
        raise errors.BadRequest(refusal)
    chosen = offered.requests[0]
    try:
        services.placement.change_allocations(
            instance.uuid, lambda held: _sum(held, chosen.allocations), instance.project_id, instance.user_id
        )
    except errors.ClaimRefused as full:
        raise errors.BadRequest(refusal, details=full.details) from full
    vif.profile = with_allocation(vif.profile, request, chosen.mappings)


def settle(services: ConductorServices, context: RequestContext, instance: Instance) -> None:
    """Releases the resources of a detached port: the server keeps what its flavor and its other ports ask for."""
    ports = services.network.ports_of_server(context, PortOwner.of(instance))
    profiles = {port["id"]: port.get("binding:profile") or {} for port in ports}
    wanted: Allocations = {}
    for request in requests_of(ports):
        if allocation := profiles[request.port_id].get(ALLOCATION):
            wanted = _sum(wanted, request.held(allocation))

    def change(held: Allocations) -> Allocations:
        others = {provider: _without_ports(resources) for provider, resources in held.items()}
        return _sum({provider: resources for provider, resources in others.items() if resources}, wanted)

    services.placement.change_allocations(instance.uuid, change, instance.project_id, instance.user_id)


def _without_ports(resources: Resources) -> Resources:
    return {name: amount for name, amount in resources.items() if not name.startswith(OF_PORTS)}


def _sum(held: Allocations, more: Allocations) -> Allocations:
    total = {provider: dict(resources) for provider, resources in held.items()}
    for provider, resources in more.items():
        there = total.setdefault(provider, {})
        for name, amount in resources.items():
            there[name] = there.get(name, 0) + amount
    return total
