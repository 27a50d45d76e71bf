"""Ports that ask for resources, in a move: claims resources at the target, and reports the providers to the network service."""

from __future__ import annotations

import dataclasses

from causeway.clients import port_requests
from causeway.clients.network_api import Json
from causeway.clients.port_requests import ALLOCATION
from causeway.model.network import Vif
from causeway.moves.memory import MoveMemory
from causeway.scheduler.request import RequestSpec, Selection


def ask_for_ports(spec: RequestSpec, memory: MoveMemory, ports: list[Json]) -> None:
    """Adds the resources of the server's ports to the request for a host, and notes their present providers in the memory."""
    memory.port_requests = port_requests.requests_of(ports)
    spec.requested_resources = port_requests.all_groups(memory.port_requests)
    spec.same_subtree = port_requests.subtrees(memory.port_requests)
    profiles = {port["id"]: port.get("binding:profile") or {} for port in ports}
    memory.port_allocations = {
        port_id: profile[ALLOCATION] for port_id, profile in profiles.items() if profile.get(ALLOCATION)
    }


def profile_at(memory: MoveMemory, vif: Vif, target: Selection) -> Json:
    """Returns the binding profile of a port at the target."""
    request = next((each for each in memory.port_requests if each.port_id == vif.id), None)
    return port_requests.with_allocation(vif.profile, request, target.allocation_request.mappings)


def at_target(memory: MoveMemory, vifs: list[Vif]) -> list[Vif]:
    """Returns the server's ports with the binding profiles that they have at the target."""
    return [dataclasses.replace(vif, profile=profile_at(memory, vif, memory.destination)) for vif in vifs]


def at_source(memory: MoveMemory, vifs: list[Vif]) -> list[Vif]:
    """Returns the server's ports with the binding profiles that they have at the source."""
    return [
        dataclasses.replace(vif, profile={**vif.profile, ALLOCATION: memory.port_allocations[vif.id]})
        if vif.id in memory.port_allocations
        else vif
        for vif in vifs
    ]
