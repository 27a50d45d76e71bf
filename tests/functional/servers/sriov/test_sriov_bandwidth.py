"""SR-IOV ports with guaranteed bandwidth: their device is a function of the card that gives it."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from causeway.clients.placement import Inventory
from tests.functional.servers import sriov_cloud
from tests.functional.servers.moves_cloud import Cloud, until
from tests.functional.servers.sriov_cloud import FUNCTIONS, OTHER_FUNCTIONS, boot, check_agrees, profile_of

OVERRIDES = copy.deepcopy(sriov_cloud.OVERRIDES)
# Both cards are on one network; the first one would be taken without the bandwidth of the second.
OVERRIDES["pci"]["device_spec"] = [
    '{"devname": "ens1f0", "physical_network": "physnet1"}',
    '{"devname": "ens2f0", "physical_network": "physnet1"}',
]
CLOUD = {"overrides": OVERRIDES}
networks, ports = sriov_cloud.networks, sriov_cloud.ports
EGRESS, INGRESS = "NET_BW_EGR_KILOBIT_PER_SEC", "NET_BW_IGR_KILOBIT_PER_SEC"
FORMS = pytest.mark.parametrize("groups", [True, False], ids=["groups", "older form"])


@pytest.fixture(scope="module", autouse=True)
def agents(module_cloud: Cloud) -> None:
    """What SR-IOV agents make below each compute node: themselves, and the second card with its bandwidth."""
    module_cloud.needs_devcloud("network agents' providers are made here")
    placement = module_cloud.parts.around.placement
    for root in placement.list_providers():
        agent, card = str(uuid.uuid4()), str(uuid.uuid4())
        placement.ensure_provider(agent, f"{root.name}:NIC Switch agent", parent_uuid=root.uuid)
        placement.ensure_provider(card, f"{root.name}:NIC Switch agent:ens2f0", parent_uuid=agent)
        placement.set_inventory(card, {EGRESS: Inventory(10000), INGRESS: Inventory(10000)})
        placement.set_traits(card, {"CUSTOM_VNIC_TYPE_DIRECT", "CUSTOM_PHYSNET_PHYSNET1"})


@pytest.fixture
def policy(cloud: Cloud) -> Iterator[Any]:
    network = cloud.admin.network
    policy = network.create_qos_policy(name="guaranteed", shared=True)
    network.create_qos_minimum_bandwidth_rule(policy, direction="egress", min_kbps=1000)
    yield policy
    cloud.parts.devcloud.port_resource_request_groups = True
    for port in network.ports():
        if port.qos_policy_id == policy.id:
            network.update_port(port, qos_policy_id=None)
    network.delete_qos_policy(policy)


@FORMS
@pytest.mark.parametrize("flavor", ["gen2.small", "any.medium"], ids=["cross-cell", "same-cell"])
def test_the_function_is_of_the_card_that_gives_the_bandwidth(
    cloud: Cloud, ports: Any, policy: Any, groups: bool, flavor: str
) -> None:
    cloud.parts.devcloud.port_resource_request_groups = groups
    plain, guaranteed = ports(), ports(qos_policy_id=policy.id)
    server = boot(cloud, plain, guaranteed)
    check_agrees(cloud, server, plain, guaranteed)
    assert profile_of(cloud, plain)["pci_slot"] == FUNCTIONS[0]
    before = profile_of(cloud, guaranteed)
    assert before["pci_slot"] == OTHER_FUNCTIONS[0]

    cloud.resized(server, flavor)
    check_agrees(cloud, server, plain, guaranteed)
    moved = profile_of(cloud, guaranteed)
    assert moved["pci_slot"] == OTHER_FUNCTIONS[0] and moved["allocation"] != before["allocation"]
    cloud.reverted(server)
    check_agrees(cloud, server, plain, guaranteed)
    assert profile_of(cloud, guaranteed) == before


@FORMS
def test_a_port_that_is_attached_moves_along(cloud: Cloud, ports: Any, policy: Any, groups: bool) -> None:
    cloud.parts.devcloud.port_resource_request_groups = groups
    server, port = cloud.boot(), ports(qos_policy_id=policy.id)
    cloud.member.compute.create_server_interface(server.id, port_id=port.id)
    assert check_agrees(cloud, server, port) == OTHER_FUNCTIONS[:1]
    cloud.resized(server)
    cloud.confirmed(server)
    assert check_agrees(cloud, server, port) == OTHER_FUNCTIONS[:1]
    cloud.member.compute.delete_server_interface(port.id, server.id)
    until(lambda: cloud.admin.network.get_port(port.id).device_id, lambda id: id == "", "the port to be free")
    cloud.settle()
    assert check_agrees(cloud, server) == []


@FORMS
def test_a_guest_that_goes_live_gets_a_function_of_the_card_that_gives_the_bandwidth(
    cloud: Cloud, ports: Any, policy: Any, groups: bool
) -> None:
    cloud.parts.devcloud.port_resource_request_groups = groups
    plain, guaranteed = ports(), ports(qos_policy_id=policy.id)
    server = boot(cloud, plain, guaranteed)
    before, source = profile_of(cloud, guaranteed), cloud.show(server).compute_host
    for _way in ("there", "back"):
        cloud.admin.compute.live_migrate_server(server.id, host=None, block_migration="auto")
        cloud.settle()
        cloud.wait(server, "ACTIVE")
        check_agrees(cloud, server, plain, guaranteed)
        moved = profile_of(cloud, guaranteed)
        assert (profile_of(cloud, plain)["pci_slot"], moved["pci_slot"]) == (FUNCTIONS[0], OTHER_FUNCTIONS[0])
        assert (cloud.show(server).compute_host == source) is (moved["allocation"] == before["allocation"])
    assert cloud.show(server).compute_host == source
