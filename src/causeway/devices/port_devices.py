"""The requests of servers' ports for devices of a chosen host.

A port with guaranteed bandwidth gets it from one network interface of the host, which Placement has chosen. Its device must be
a virtual function of that interface. The network service's agents name the providers of such interfaces
``host:agent:interface``. Source: Compute admin guide, "Ports with resource requests"; Network admin guide, "QoS minimum
bandwidth allocation in Placement".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from causeway.clients.port_requests import ALLOCATION, PortRequest, request_of
from causeway.hardware import port_devices
from causeway.hardware.pci_request import affinity_of
from causeway.model.instance import Instance
from causeway.model.network import Vif
from causeway.model.pci import InstancePCIRequest
from causeway.running.services import ConductorServices

# The network service's agent for SR-IOV, in the names of its providers.
NIC_AGENT = "NIC Switch agent"


def at_host(
    services: ConductorServices,
    requests: Sequence[InstancePCIRequest],
    asked: Iterable[PortRequest],
    mappings: Mapping[str, list[str]],
) -> list[InstancePCIRequest]:
    """The requests; those of ports with bandwidth ask for a function of the interface that provides it.

    ``mappings``: Placement's choice.
    """
    by_port = {request.port_id: request for request in asked}
    found = []
    for request in requests:
        port = by_port.get(request.requester_id or "")
        provider = port.provider_of_bandwidth(mappings) if port is not None else None
        interface = _interface_of(services, provider) if provider is not None else None
        found.append(request if interface is None else port_devices.under(request, interface))
    return found


def for_attach(
    services: ConductorServices,
    instance: Instance,
    vif: Vif,
    request: InstancePCIRequest,
    resource_request: Mapping[str, Any] | None,
) -> list[InstancePCIRequest]:
    """The same for a port that is being attached. `causeway.devices.port_resources` has noted the provider of its bandwidth."""
    policed = port_devices.with_policy([request], affinity_of(instance.flavor, instance.image_meta))
    asked, allocation = request_of(vif.id, resource_request), vif.profile.get(ALLOCATION)
    if asked is None or allocation is None:
        return policed
    if isinstance(allocation, str):
        mappings = {group.suffix: [allocation] for group in asked.groups}
    else:
        mappings = {group: [provider] for group, provider in allocation.items()}
    return at_host(services, policed, [asked], mappings)


def _interface_of(services: ConductorServices, provider: str) -> str | None:
    """The interface of a provider; None for a bridge or the like, which has no functions."""
    found = services.placement.get_provider(provider)
    parts = found.name.split(":") if found is not None else []
    return parts[2] if len(parts) == 3 and parts[1] == NIC_AGENT else None
