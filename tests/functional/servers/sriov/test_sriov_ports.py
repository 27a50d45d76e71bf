"""Ports that need a device of the host: placed where there is one, named to the network service, released with their server."""

from __future__ import annotations

from typing import Any

import openstack
import pytest

from causeway.rpc.transport import Verdict
from tests.functional.servers import sriov_cloud
from tests.functional.servers.moves_cloud import Cloud, until
from tests.functional.servers.pinned_cloud import make_flavor, nothing_held
from tests.functional.servers.sriov_cloud import (
    CARD,
    FUNCTIONS,
    OTHER_CARD,
    OTHER_FUNCTIONS,
    boot,
    check_agrees,
    devices_on,
    profile_of,
)

CLOUD = sriov_cloud.CLOUD
networks, ports = sriov_cloud.networks, sriov_cloud.ports


@pytest.mark.parametrize(
    ("vnic_type", "network", "device", "reported"),
    [
        ("direct", "physnet1", FUNCTIONS[0], {"pci_vendor_info": "8086:154c"}),
        ("macvtap", "physnet1", FUNCTIONS[0], {"pci_vendor_info": "8086:154c"}),
        ("direct", "physnet2", OTHER_FUNCTIONS[0], {"pci_vendor_info": "15b3:101e"}),
        ("direct-physical", "physnet1", CARD, {"pci_vendor_info": "8086:1572"}),
    ],
)
def test_a_server_gets_the_device_of_its_port(
    cloud: Cloud, ports: Any, vnic_type: str, network: str, device: str, reported: dict[str, Any]
) -> None:
    port = ports(network, vnic_type)
    server = boot(cloud, port)
    host = cloud.show(server).compute_host
    assert check_agrees(cloud, server, port) == [device]
    profile = profile_of(cloud, port)
    assert profile | reported == profile
    assert (profile["pci_slot"], profile["physical_network"]) == (device, network)
    assert ("device_mac_address" in profile) == (vnic_type == "direct-physical")
    shown = cloud.admin.network.get_port(port.id)
    assert shown.binding_vif_type == ("hostdev_physical" if vnic_type == "direct-physical" else "hw_veb")
    assert shown.binding_vif_details["vlan"] == ("102" if network == "physnet2" else "101")

    cloud.clean()
    assert devices_on(cloud, host) == []
    left = cloud.admin.network.get_port(port.id)
    assert (left.binding_host_id, left.binding_profile, left.device_id) == ("", {}, "")


def test_what_a_user_put_into_the_profile_stays(cloud: Cloud, ports: Any) -> None:
    port = ports(binding_profile={"trusted": "true", "capabilities": ["x"]})
    server = boot(cloud, port)
    check_agrees(cloud, server, port)
    assert profile_of(cloud, port)["trusted"] == "true"
    assert profile_of(cloud, port)["capabilities"] == ["x"]
    cloud.clean()
    assert cloud.admin.network.get_port(port.id).binding_profile == {"trusted": "true", "capabilities": ["x"]}


def no_host_for(cloud: Cloud, port: Any, flavor: str = "gen1.small") -> str:
    server = cloud.member.compute.create_server(
        name="nowhere", flavor_id=flavor, image_id=cloud.image_id, networks=[{"port": port.id}]
    )
    found = until(lambda: cloud.show(server), lambda found: found.status == "ERROR", "no host to be found")
    message: str = found.fault["message"]
    assert message.startswith("No valid host was found.")
    assert cloud.allocations(server.id) == {}
    return message


def test_no_host_has_the_physical_network(cloud: Cloud, ports: Any) -> None:
    port = ports("physnet9")
    assert f"too few free PCI devices (type-VF) for the network of port {port.id}" in no_host_for(cloud, port)
    assert nothing_held(cloud)


def test_a_trusted_port_only_gets_a_trusted_function(cloud: Cloud, ports: Any) -> None:
    no_host_for(cloud, ports("physnet2", binding_profile={"trusted": "true"}))


def test_functions_run_out_and_their_card_is_not_free_meanwhile(cloud: Cloud, ports: Any) -> None:
    for _host in range(2):
        boot(cloud, ports("physnet2"), ports("physnet2"))
    assert devices_on(cloud, "cell1-host1") == devices_on(cloud, "cell1-host2") == OTHER_FUNCTIONS
    no_host_for(cloud, ports("physnet2"))
    # Nor is a card of which a function is taken.
    no_host_for(cloud, ports("physnet2", "direct-physical"))


def test_a_card_in_use_has_no_functions_to_give(cloud: Cloud, ports: Any) -> None:
    for _host in range(2):
        boot(cloud, ports("physnet2", "direct-physical"))
    assert devices_on(cloud, "cell1-host1") == devices_on(cloud, "cell1-host2") == [OTHER_CARD]
    no_host_for(cloud, ports("physnet2"))


def test_ports_and_flavors_share_the_functions(cloud: Cloud, ports: Any) -> None:
    flavor = make_flavor(cloud, "with.vf", gen="1", pci_passthrough__alias="vf:1")
    port = ports()
    server = boot(cloud, port, flavor=flavor)
    host = cloud.show(server).compute_host
    assert check_agrees(cloud, server, port) == FUNCTIONS[:2]
    cloud.member.compute.delete_server_interface(port.id, server.id)
    until(lambda: devices_on(cloud, host), lambda held: len(held) == 1, "the port's device to be released")
    cloud.settle()
    assert len(check_agrees(cloud, server)) == 1


@pytest.mark.parametrize(("policy", "fits"), [("required", False), ("preferred", True), (None, False)])
def test_a_ports_numa_policy_says_how_near_its_device_is(
    cloud: Cloud, ports: Any, policy: str | None, fits: bool
) -> None:
    # The server's CPUs are to be in the cell in which the card of physnet2 is not.
    flavor = make_flavor(
        cloud, "both.cells", vcpus=2, gen="1", hw__numa_nodes="1", hw__pci_numa_affinity_policy="required"
    )
    first, second = ports("physnet1"), ports("physnet2", numa_affinity_policy=policy)
    if fits:
        server = boot(cloud, first, second, flavor=flavor)
        assert check_agrees(cloud, server, first, second) == [FUNCTIONS[0], OTHER_FUNCTIONS[0]]
        return
    server = cloud.member.compute.create_server(
        name="too far",
        flavor_id=flavor,
        image_id=cloud.image_id,
        networks=[{"port": first.id}, {"port": second.id}],
    )
    until(lambda: cloud.show(server), lambda found: found.status == "ERROR", "no host to be found")


def test_an_attached_port_has_a_function_until_it_is_detached(cloud: Cloud, ports: Any) -> None:
    server = cloud.boot()
    host = cloud.show(server).compute_host
    first, second = ports("physnet1"), ports("physnet2", "macvtap")
    for port in (first, second):
        cloud.member.compute.create_server_interface(server.id, port_id=port.id)
    assert check_agrees(cloud, server, first, second) == [FUNCTIONS[0], OTHER_FUNCTIONS[0]]

    cloud.member.compute.delete_server_interface(first.id, server.id)
    until(lambda: cloud.admin.network.get_port(first.id).device_id, lambda id: id == "", "the port to be free")
    cloud.settle()
    assert profile_of(cloud, first) == {}
    assert check_agrees(cloud, server, second) == OTHER_FUNCTIONS[:1]
    cloud.member.compute.delete_server_interface(second.id, server.id)
    until(lambda: cloud.admin.network.get_port(second.id).device_id, lambda id: id == "", "the port to be free")
    cloud.settle()
    assert devices_on(cloud, host) == []
    assert cloud.record(server, "cell1").pci_requests == []


def test_nothing_stays_of_an_attach_that_is_refused(cloud: Cloud, ports: Any) -> None:
    server = cloud.boot()
    host = cloud.show(server).compute_host
    port = ports("physnet9")
    with pytest.raises(openstack.exceptions.BadRequestException) as refused:
        cloud.member.compute.create_server_interface(server.id, port_id=port.id)
    assert f"free PCI devices (type-VF) for the network of port {port.id} (needs 1, 0 free)" in str(refused.value)
    check_nothing_stays(cloud, server, port, host)


@pytest.mark.expects_errors("os-interface failed")
@pytest.mark.parametrize(
    "broken", ["the binding is refused", "the guest does not take it", "the claim's answer is lost"]
)
def test_nothing_stays_of_an_attach_that_fails(cloud: Cloud, ports: Any, broken: str) -> None:
    server = cloud.boot()
    host, port = cloud.show(server).compute_host, ports()
    if broken == "the binding is refused":
        cloud.fail("status", f"/ports/{port.id}$", service="network", method="PUT", status=403, times=1)
    elif broken == "the guest does not take it":
        cloud.break_driver([host], "attach_interface", 1)
    else:
        cloud.lose("claim_port_device", Verdict.LOSE_REPLY, 1)
    with pytest.raises(openstack.exceptions.HttpException):
        cloud.member.compute.create_server_interface(server.id, port_id=port.id)
    cloud.heal()
    check_nothing_stays(cloud, server, port, host)


def check_nothing_stays(cloud: Cloud, server: Any, port: Any, host: str) -> None:
    cloud.settle()
    until(lambda: devices_on(cloud, host), lambda held: held == [], "the device to be released")
    left = cloud.admin.network.get_port(port.id)
    assert (left.device_id, left.binding_profile) == ("", {})
    assert check_agrees(cloud, server) == []


def test_a_port_with_an_accelerator_is_refused(cloud: Cloud, ports: Any) -> None:
    port = ports(vnic_type="accelerator-direct")
    with pytest.raises(openstack.exceptions.BadRequestException, match="accelerators are not supported"):
        cloud.member.compute.create_server(
            name="accelerated", flavor_id="gen1.small", image_id=cloud.image_id, networks=[{"port": port.id}]
        )


@pytest.mark.parametrize("hard", [True, False])
def test_a_server_keeps_the_device_of_its_port_when_it_is_rebuilt_and_rebooted(
    cloud: Cloud, ports: Any, hard: bool
) -> None:
    port = ports()
    server = boot(cloud, port)
    devices = check_agrees(cloud, server, port)
    if hard:
        cloud.member.compute.reboot_server(server.id, "HARD")
    else:
        cloud.member.compute.rebuild_server(server.id, image=cloud.image_id)
    cloud.settle()
    cloud.wait(server, "ACTIVE")
    assert check_agrees(cloud, server, port) == devices


def test_an_unshelved_server_gets_a_function_again(cloud: Cloud, ports: Any) -> None:
    port = ports(binding_profile={"trusted": "true"})
    server = boot(cloud, port)
    host = cloud.show(server).compute_host
    cloud.member.compute.shelve_server(server.id)
    until(lambda: cloud.show(server).status, lambda status: status.startswith("SHELVED"), "it to be shelved")
    cloud.settle()
    if cloud.show(server).status == "SHELVED":
        cloud.admin.compute.shelve_offload_server(server.id)
        cloud.wait(server, "SHELVED_OFFLOADED")
    cloud.settle()
    assert devices_on(cloud, host) == []
    assert profile_of(cloud, port) == {"trusted": "true"}
    cloud.member.compute.unshelve_server(server.id)
    cloud.wait(server, "ACTIVE")
    cloud.settle()
    assert check_agrees(cloud, server, port) == FUNCTIONS[:1]
    assert profile_of(cloud, port)["trusted"] == "true"
