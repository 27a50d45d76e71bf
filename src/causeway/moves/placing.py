"""Chooses a host for a server that is evacuated or unshelved.

The server stays in its cell unless the request says otherwise.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Collection

from causeway.clients import port_requests
from causeway.clients.port_owners import PortOwner
from causeway.clients.port_requests import PortRequest
from causeway.context import RequestContext
from causeway.devices.port_devices import at_host
from causeway.hardware.port_devices import requests_of
from causeway.hardware.requests import asked_of
from causeway.hosts import liveness
from causeway.model.instance import Instance
from causeway.model.orders import Order
from causeway.running.services import ConductorServices
from causeway.scheduler.request import Destination, MoveClaim, RequestSpec, Selection
from causeway.store.api import mappings

LOG = logging.getLogger(__name__)


@dataclasses.dataclass
class ClaimedHost:
    """A host that is claimed in Placement, and the server as it will be there. ``asked``: the resources of its ports."""

    selection: Selection
    instance: Instance
    asked: list[PortRequest]


def choose(
    services: ConductorServices,
    context: RequestContext,
    instance: Instance,
    cell_uuid: str,
    *,
    order: Callable[[], Order],
    host: str | None,
    forced: bool = False,
    move: MoveClaim | None = None,
    ignore: Collection[str] = (),
    leaves_cell: bool = False,
    zone: str | None = None,
    storage: str | None = None,
) -> ClaimedHost:
    """Chooses and claims a host. Raises NoValidHost.

    ``order``: names the order, each time one is sent. ``host``: the requested one; ``forced``: skips all filters; ``ignore``:
    hosts that refused. ``leaves_cell``: any cell except ``cell_uuid``. ``zone``: where the server stays, unless it is pinned to
    another one. ``storage``: of its disks, if several hosts reach it; these are preferred.
    """
    spec = RequestSpec.from_persisted(mappings.get_spec(services.api, instance.uuid))
    spec.requested_destination = (
        Destination(leave_cell=cell_uuid) if leaves_cell else Destination(host=host, cell=cell_uuid)
    )
    spec.availability_zone = spec.availability_zone or zone
    spec.source_storage = storage
    hardware = asked_of(services.conf, spec.flavor, spec.image, requests_of(instance))
    spec.numa_topology, spec.pci_requests = hardware.numa_topology, hardware.pci_requests
    spec.ignore_hosts = [*ignore] if instance.host is None else [instance.host, *ignore]
    if forced and host is not None:
        spec.force_hosts = [host]
    # The server holds nothing yet. So a late claim is refused if another host is claimed already.
    spec.is_new = move is None
    asked: list[PortRequest] = []
    if instance.network_info:
        asked = port_requests.requests_of(services.network.ports_of_server(context, PortOwner.of(instance)))
        spec.requested_resources = port_requests.all_groups(asked)
        spec.same_subtree = port_requests.subtrees(asked)
    selection = _select(services, context, instance.uuid, spec, move, order)
    by_port = {request.port_id: request for request in asked}
    vifs = [
        dataclasses.replace(
            vif,
            profile=port_requests.with_allocation(
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
        pci_requests=at_host(services, spec.pci_requests, asked, selection.allocation_request.mappings),
    )
    return ClaimedHost(selection, there, asked)


def _select(
    services: ConductorServices,
    context: RequestContext,
    uuid: str,
    spec: RequestSpec,
    move: MoveClaim | None,
    order: Callable[[], Order],
) -> Selection:
    """Selects a host that is up: the scheduler notices a moment later that a host has died."""
    more = {} if move is None else {"move": move}
    while True:
        spec.order = order()
        chosen = services.scheduler.select_destinations(
            context, spec=spec, instance_uuids=[uuid], alternates=False, **more
        )[0].selected
        database = services.cells.database(chosen.cell_uuid)
        if spec.force_hosts or liveness.of_host(services, database, chosen.host).is_up:
            return chosen
        LOG.info("Host %s was chosen for server %s, and is down: another one is chosen", chosen.host, uuid)
        if move is None:
            services.placement.delete_allocations(uuid)
        else:
            services.placement.return_allocations(uuid, move.migration_uuid, source_provider=move.source_node)
        # The list of excluded hosts grows each time, until NoValidHost is raised.
        spec.ignore_hosts = [*spec.ignore_hosts, chosen.host]
