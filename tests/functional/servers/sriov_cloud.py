"""What tests of SR-IOV ports share: hosts with network cards and their virtual functions, networks on them, ports.

Each simulated host has two cards: ``ens1f0`` with three functions on physnet1, whose functions are trusted, in NUMA cell 0;
``ens2f0`` with two functions on physnet2, in cell 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from causeway.audit import audit_embedded
from tests.functional.servers.moves_cloud import Cloud
from tests.functional.servers.pinned_cloud import guest_topology, held

CARD, OTHER_CARD = "0000:81:00.0", "0000:c1:00.0"
FUNCTIONS = ["0000:81:02.0", "0000:81:02.1", "0000:81:02.2"]
OTHER_FUNCTIONS = ["0000:c1:02.0", "0000:c1:02.1"]
OVERRIDES: dict[str, dict[str, Any]] = {
    "simulated": {
        "vcpus": 16,
        "numa_nodes": 2,
        "pci_devices": [
            f"{CARD}=8086:1572@0/pf:ens1f0",
            *(f"{function}=8086:154c@0/vf:{CARD}" for function in FUNCTIONS),
            f"{OTHER_CARD}=15b3:101d@1/pf:ens2f0/serial:MT2113X00000",
            *(f"{function}=15b3:101e@1/vf:{OTHER_CARD}" for function in OTHER_FUNCTIONS),
        ],
    },
    "pci": {
        "device_spec": [
            '{"devname": "ens1f0", "physical_network": "physnet1", "trusted": "true"}',
            f'{{"address": "{OTHER_CARD}", "physical_network": "physnet2"}}',
        ],
        "alias": ['{"name": "vf", "vendor_id": "8086", "product_id": "154c", "device_type": "type-VF"}'],
    },
}
CLOUD = {"overrides": OVERRIDES}


@pytest.fixture(scope="module")
def networks(module_cloud: Cloud) -> dict[str, str]:
    """physical network -> a VLAN network on it. No host has physnet9."""
    module_cloud.needs_devcloud("networks on physical ones are made here")
    found = {}
    for vlan, name in enumerate(("physnet1", "physnet2", "physnet9"), start=101):
        network = module_cloud.admin.network.create_network(
            name=name,
            is_shared=True,
            provider_network_type="vlan",
            provider_physical_network=name,
            provider_segmentation_id=vlan,
        )
        module_cloud.admin.network.create_subnet(network_id=network.id, ip_version=4, cidr=f"10.{vlan}.0.0/24")
        found[name] = network.id
    return found


@pytest.fixture
def ports(cloud: Cloud, networks: dict[str, str]) -> Iterator[Any]:
    """Makes ports on physical networks; they are deleted at the end."""
    made = []

    def make(network: str = "physnet1", vnic_type: str = "direct", **more: Any) -> Any:
        connection = cloud.admin if "binding_profile" in more else cloud.member
        port = connection.network.create_port(network_id=networks[network], binding_vnic_type=vnic_type, **more)
        made.append(port)
        return port

    yield make
    cloud.heal()
    cloud.settle()
    cloud.clean()
    for port in made:
        cloud.admin.network.delete_port(port, ignore_missing=True)


def boot(cloud: Cloud, *ports: Any, **more: Any) -> Any:
    return cloud.boot(networks=[{"port": port.id} for port in ports], **more)


def profile_on(cloud: Cloud, port: Any, host: str) -> dict[str, Any]:
    """The profile of a port's binding to a host."""
    found: dict[str, Any] = cloud.admin.network.get(f"/ports/{port.id}/bindings/{host}").json()["binding"]["profile"]
    return found


def profile_of(cloud: Cloud, port: Any) -> dict[str, Any]:
    """What the network service knows of the port's device."""
    found: dict[str, Any] = cloud.admin.network.get_port(port.id).binding_profile
    return found


def devices_on(cloud: Cloud, host: str) -> list[str]:
    found: list[str] = held(cloud, host)["devices"]
    return found


def check_agrees(cloud: Cloud, server: Any, *ports: Any) -> list[str]:
    """Record, host, guest and bindings name the same devices: those of the server's ports. Returns their addresses."""
    host = cloud.show(server).compute_host
    record = cloud.record(server, host[:5])
    addresses = {device.request_id: device.address for device in record.pci_devices}
    for port in ports:
        assert profile_of(cloud, port)["pci_slot"] == addresses[port.id]
        (vif,) = [vif for vif in record.network_info if vif.id == port.id]
        assert vif.profile == profile_of(cloud, port)
    assert sorted(guest_topology(cloud, server)[1]) == sorted(addresses.values())
    assert set(addresses.values()) <= set(devices_on(cloud, host))
    assert audit_embedded(cloud.parts, pause=0.01).disagreements == []
    return sorted(addresses.values())
