"""A host that nobody has heard of, which reports what is another host's."""

from __future__ import annotations

import dataclasses
import uuid
from typing import Any

from causeway.context import admin_context
from causeway.model.host import ComputeNode
from causeway.model.outcomes import HostReport
from causeway.rpc.cell_conductor import CellConductorClient
from causeway.store.cell import hosts
from tests.functional.servers.moves_cloud import Cloud
from tests.functional.servers.patience import until

VICTIM = "cell1-host1"


def victim_node(cloud: Cloud) -> ComputeNode:
    (node,) = hosts.list_nodes(cloud.cell("cell1"), host=VICTIM)
    return node


def report(cloud: Cloud, cell: str, host: str, **of_node: Any) -> HostReport:
    """What a host of this name sends to the conductor of a cell: a large host, but for what it takes from others."""
    mine: dict[str, Any] = {"uuid": str(uuid.uuid4()), "hypervisor_hostname": host, "running_vms": 0, **of_node}
    node = dataclasses.replace(victim_node(cloud), host=host, **mine)
    sent = HostReport(host=host, service_version=2, node=node)
    (mapping,) = (each for each in cloud.parts.cells.mappings() if each.name == cell)
    CellConductorClient(cloud.embedded.around.transports.get(mapping.transport_url)).report_host(
        admin_context(), report=sent
    )
    return sent


def with_room(cloud: Cloud, node: ComputeNode) -> None:
    """Makes a provider for a node, with more room than the victim has, so that a scheduler would like it better."""
    placement, victim = cloud.parts.around.placement, victim_node(cloud)
    placement.ensure_provider(node.uuid, f"of {node.uuid}")
    more = {
        name: dataclasses.replace(each, total=each.total * 16, max_unit=None)
        for name, each in placement.get_inventories(victim.uuid).items()
    }
    placement.set_inventory(node.uuid, more)
    placement.change_traits(node.uuid, add=placement.get_traits(victim.uuid))
    for aggregate in placement.get_aggregates(victim.uuid):
        placement.add_aggregate(node.uuid, aggregate)


def traits_of(cloud: Cloud, node: ComputeNode) -> set[str]:
    return set(cloud.parts.around.placement.get_traits(node.uuid))


def provider_stays(cloud: Cloud, node: ComputeNode) -> bool:
    return node.uuid in {provider.uuid for provider in cloud.parts.around.placement.list_providers()}


def delete_records(cloud: Cloud, cell: str, host: str) -> None:
    """Deletes what a host left in its cell's database, as if it had never been there."""
    for service in hosts.list_services(cloud.cell(cell), host=host):
        hosts.delete_service(cloud.cell(cell), service.uuid)


def service_of(cloud: Cloud, cell: str, host: str) -> Any:
    (record,) = hosts.list_services(cloud.cell(cell), host=host, binary="nova-compute")
    return next(each for each in cloud.admin.compute.services() if each.id == record.uuid)


def create(cloud: Cloud, host: str) -> Any:
    """A server on this host, as an administrator asks for it; waits until it is built or has failed."""
    server = cloud.admin.compute.create_server(
        name="wanted",
        flavor_id="gen1.small",
        image_id=cloud.image_id,
        networks=[{"uuid": cloud.network_id}],
        availability_zone=f"nova:{host}",
    )
    until(lambda: cloud.json_of(server), lambda found: found["status"] in ("ACTIVE", "ERROR"), "the build to end")
    return cloud.show(server)
