"""What tests of NUMA cells, pinned CPUs, huge pages and PCI devices share: hosts that have them, and what is held there.

Each simulated host has two NUMA cells of eight CPUs: in each four dedicated ones and 64 pages of 2 MiB, and one PCI device.
"""

from __future__ import annotations

from typing import Any

from causeway.model.flavor import Flavor
from causeway.model.numa import InstanceNUMATopology, NUMATopology
from causeway.store.api import flavors
from tests.functional.servers.moves_cloud import Cloud

NIC = '{"name": "nic", "vendor_id": "8086", "product_id": "154d"}'
OVERRIDES: dict[str, dict[str, Any]] = {
    "simulated": {
        "vcpus": 16,
        "numa_nodes": 2,
        "huge_pages": ["2048:128"],
        "pci_devices": ["0000:81:00.0=8086:154d@0", "0000:c1:00.0=8086:154d@1", "0000:05:00.0=1234:5678"],
    },
    "compute": {"cpu_dedicated_set": "4-7,12-15", "cpu_shared_set": "0-3,8-11"},
    "pci": {"device_spec": ['{"vendor_id": "8086", "product_id": "154d"}'], "alias": [NIC]},
}
CLOUD = {"overrides": OVERRIDES}

FIRST, SECOND = "0000:81:00.0", "0000:c1:00.0"


def make_flavor(
    cloud: Cloud, name: str, *, vcpus: int = 2, ram: int = 128, gen: str | None = None, **specs: str
) -> str:
    """A flavor with these extra specs, ``__`` for a colon and ``_DOT_`` for a dot: ``hw__cpu_policy="dedicated"``."""
    named = {key.replace("__", ":").replace("_DOT_", "."): value for key, value in specs.items()}
    if gen is not None:
        named["aggregate_instance_extra_specs:gen"] = gen
    made = Flavor(name, name, vcpus=vcpus, memory_mb=ram, root_gb=1, extra_specs=named)
    there = {flavor.flavorid: flavor for flavor in flavors.list_all(cloud.parts.api_database)}
    if name in there:
        assert there[name].extra_specs == named, f"another flavor of this module is called {name}"
    else:
        flavors.create(cloud.parts.api_database, made)
    return name


def pinned(cloud: Cloud, name: str, vcpus: int = 2, **more: Any) -> str:
    return make_flavor(cloud, name, vcpus=vcpus, **{"hw__cpu_policy": "dedicated", **more})


def held(cloud: Cloud, host: str) -> dict[str, Any]:
    """What is held on a host, as its compute says: CPUs, pages, devices."""
    claims = cloud.claims(host)
    topology = claims.topology()
    assert topology is not None
    return summary(topology) | {"devices": sorted(d.address for d in claims.devices() if d.instance_uuid is not None)}


def summary(topology: NUMATopology) -> dict[str, Any]:
    return {
        "cpus": [cpu for cell in topology.cells for cpu in cell.pinned_cpus],
        "pages": sum(pages.used for cell in topology.cells for pages in cell.mempages),
    }


NOTHING: dict[str, Any] = {"cpus": [], "pages": 0, "devices": []}


def guest_topology(cloud: Cloud, server: Any) -> tuple[InstanceNUMATopology | None, list[str]]:
    """What the guest was really made with."""
    return cloud.driver(cloud.show(server).compute_host).guest_hardware(server.id)


def nothing_held(cloud: Cloud) -> bool:
    return all(held(cloud, host) == NOTHING for host in cloud.parts.computes)


def claims_of(cloud: Cloud, server: Any) -> list[str]:
    """The hosts that keep something for a server."""
    return [
        name
        for name in cloud.parts.computes
        if any(claim.instance_uuid == server.id for claim in cloud.claims(name).listed())
    ]
