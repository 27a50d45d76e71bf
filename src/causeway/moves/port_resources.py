"""Ports of a server that moves: what differs between its hosts.

A port may ask for resources, which are claimed at the target, and whose providers the network service must know. In a live
migration a port is plugged at both hosts at the same time, at each one as its binding there says.
"""

from __future__ import annotations

import dataclasses

from causeway.clients import port_requests
from causeway.clients.network_api import Json
from causeway.clients.network_bindings import PortBinding
from causeway.clients.port_requests import ALLOCATION
from causeway.hardware.port_devices import named
from causeway.hardware.port_plugs import OF_NETWORK
from causeway.model.instance import Instance
from causeway.model.network import Plugging, Vif
from causeway.moves.hardware import with_new
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


def note_target_plug(memory: MoveMemory, port_id: str, binding: PortBinding) -> None:
    """Notes how a port is plugged at the target."""
    memory.target_plugs[port_id] = Plugging(binding.vif_type, binding.vif_details)


def note_source_plugs(memory: MoveMemory, vifs: list[Vif]) -> None:
    """Notes how the server's ports are plugged at the source."""
    memory.source_plugs = {vif.id: Plugging(vif.vif_type, vif.details) for vif in vifs}


def plugged_at_target(memory: MoveMemory, instance: Instance) -> list[Vif]:
    """Returns the server's ports as they are at the target, in a live migration: plugged as there, with devices of there."""
    there = named(at_target(memory, instance.network_info), with_new(instance).pci_devices)
    return _plugged(there, memory.target_plugs)


def plugged_at_source(memory: MoveMemory, instance: Instance) -> list[Vif]:
    """Returns the server's ports as they are plugged at the source. ``instance``: its record, maybe as it is at the target."""
    context = instance.migration_context
    return _plugged(named(instance.network_info, context.old_pci_devices if context else []), memory.source_plugs)


def _plugged(vifs: list[Vif], plugs: dict[str, Plugging]) -> list[Vif]:
    return [_as_plugged(vif, plugs[vif.id]) if vif.id in plugs else vif for vif in vifs]


def _as_plugged(vif: Vif, plug: Plugging) -> Vif:
    of_network = {key: value for key, value in vif.details.items() if key in OF_NETWORK}
    return dataclasses.replace(vif, vif_type=plug.vif_type, details=of_network | plug.details)


def at_source(memory: MoveMemory, vifs: list[Vif]) -> list[Vif]:
    """Returns the server's ports with the binding profiles that they have at the source."""
    return [
        dataclasses.replace(vif, profile={**vif.profile, ALLOCATION: memory.port_allocations[vif.id]})
        if vif.id in memory.port_allocations
        else vif
        for vif in vifs
    ]
