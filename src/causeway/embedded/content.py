"""The first content of a new cloud, with which ``openstack server create`` and a resize across cells work at once."""

from __future__ import annotations

from pathlib import Path

from causeway.clients.image import ImageClient
from causeway.clients.placement import PlacementClient
from causeway.clients.rights import SERVICE
from causeway.clients.session import ServiceApi, ServiceSessions
from causeway.context import admin_context
from causeway.model.flavor import Flavor
from causeway.store.api import aggregates, flavors
from causeway.store.database import Database

GENERATION = "aggregate_instance_extra_specs:gen"

FLAVORS = (
    Flavor("gen1.small", "gen1.small", vcpus=1, memory_mb=128, root_gb=1, extra_specs={GENERATION: "1"}),
    Flavor("gen2.small", "gen2.small", vcpus=2, memory_mb=192, root_gb=2, extra_specs={GENERATION: "2"}),
    Flavor("any.small", "any.small", vcpus=1, memory_mb=128, root_gb=1),
    Flavor("any.medium", "any.medium", vcpus=2, memory_mb=192, root_gb=2),
)


def make_flavors(api: Database) -> None:
    """Makes the flavors of both generations, and two that fit every host."""
    there = {flavor.flavorid for flavor in flavors.list_all(api)}
    for flavor in FLAVORS:
        if flavor.flavorid not in there:
            flavors.create(api, flavor)


def make_aggregates(api: Database, placement: PlacementClient, hosts_by_cell: list[list[str]]) -> None:
    """Puts new hosts into aggregates: ``gen1`` has the hosts of the first cell, ``gen2`` those of all others."""
    there = {aggregate.name: aggregate for aggregate in aggregates.list_all(api)}
    providers = {provider.name: provider.uuid for provider in placement.list_providers()}
    wanted = {"gen1": hosts_by_cell[0], "gen2": [host for hosts in hosts_by_cell[1:] for host in hosts]}
    for generation, (name, hosts) in enumerate(wanted.items(), start=1):
        aggregate = there.get(name) or aggregates.create(api, name, {"gen": str(generation)})
        for host in hosts:
            if host not in aggregate.hosts:
                aggregates.add_host(api, aggregate.id, host)
            if host in providers:
                placement.add_aggregate(providers[host], aggregate.uuid)


def make_image(images: ImageClient, path: Path, disk_format: str) -> None:
    """Makes the public image ``demo``."""
    context = admin_context()
    if images.list_all({"name": "demo"}):
        return
    made = images.create(
        context,
        name="demo",
        visibility="public",
        disk_format=disk_format,
        container_format="bare",
        called_as=SERVICE,
    )
    images.upload(context, made.id, path, path.stat().st_size)


def make_network(sessions: ServiceSessions) -> None:
    """Makes the shared network ``demo-net`` with one subnet."""
    api = ServiceApi(sessions, "neutron", "network", version_suffix="/v2.0")
    query = {"name": "demo-net"}
    found = api.call(None, "GET", "/v2.0/networks", "list networks", called_as=SERVICE, query=query).json()["networks"]
    network = found[0] if found else None
    if network is None:
        body: dict[str, object] = {"network": {"name": "demo-net", "shared": True}}
        answer = api.call(None, "POST", "/v2.0/networks", "make demo-net", called_as=SERVICE, body=body)
        network = answer.json()["network"]
    if not network["subnets"]:
        subnet = {"name": "demo-subnet", "network_id": network["id"], "ip_version": 4, "cidr": "10.0.0.0/24"}
        what = "make a subnet of demo-net"
        api.call(None, "POST", "/v2.0/subnets", what, called_as=SERVICE, body={"subnet": subnet})
