"""A host for a server that has none to come up on: evacuated, or brought back from the shelf. It stays in its cell."""

from __future__ import annotations

import dataclasses

from causeway.clients import port_resources
from causeway.context import RequestContext
from causeway.hardware.requests import asked_of
from causeway.model.instance import Instance
from causeway.parts.services import ConductorServices
from causeway.scheduler.request import Destination, MoveClaim, RequestSpec, Selection
from causeway.store.api import mappings


@dataclasses.dataclass
class Place:
    """A host that is claimed in Placement, and the server as it is to be there."""

    selection: Selection
    instance: Instance


def choose(
    services: ConductorServices,
    context: RequestContext,
    instance: Instance,
    cell_uuid: str,
    *,
    host: str | None,
    forced: bool = False,
    move: MoveClaim | None = None,
) -> Place:
    """``host``: the one that was asked for; ``forced``: past all filters. Raises NoValidHost."""
    spec = RequestSpec.from_persisted(mappings.get_spec(services.api, instance.uuid))
    spec.requested_destination = Destination(host=host, cell=cell_uuid)
    hardware = asked_of(services.conf, spec.flavor, spec.image)
    spec.numa_topology, spec.pci_requests = hardware.numa_topology, hardware.pci_requests
    if instance.host is not None:
        spec.ignore_hosts = [instance.host]
    if forced and host is not None:
        spec.force_hosts = [host]
    asked = []
    if instance.network_info:
        asked = port_resources.requests_of(services.network.ports_of_server(context, instance.uuid))
        spec.requested_resources = port_resources.all_groups(asked)
        spec.same_subtree = port_resources.subtrees(asked)
    more = {} if move is None else {"move": move}
    selection = services.scheduler.select_destinations(
        context, spec=spec, instance_uuids=[instance.uuid], alternates=False, **more
    )[0].selected
    by_port = {request.port_id: request for request in asked}
    vifs = [
        dataclasses.replace(
            vif,
            profile=port_resources.with_allocation(
                vif.profile, by_port.get(vif.id), selection.allocation_request.mappings
            ),
        )
        for vif in instance.network_info
    ]
    there = dataclasses.replace(
        instance,
        host=selection.host,
        node=selection.hypervisor_hostname,
        availability_zone=selection.availability_zone,
        network_info=vifs,
    )
    return Place(selection, there)
