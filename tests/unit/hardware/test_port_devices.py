"""What ports ask of hosts, which devices answer, and what the network service gets of them."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from causeway.clients.network_requests import physical_network_of
from causeway.clients.port_requests import request_of as resource_request_of
from causeway.hardware import port_devices
from causeway.hardware.host import device_specs, devices_for_guests
from causeway.hardware.misfit import Misfit
from causeway.hardware.pci_fit import pools, take_devices, take_from_pools
from causeway.model.pci import InstancePCIRequest, PciDevice, PciDeviceType

PF, VF, VDPA = PciDeviceType.SRIOV_PF, PciDeviceType.SRIOV_VF, PciDeviceType.VDPA
CARD = PciDevice(
    "0000:81:00.0", "8086", "1572", PF, 0, extra_info={"ifname": "ens1f0", "mac_address": "02:00:00:00:00:01"}
)
ALL = [
    CARD,
    PciDevice(
        "0000:81:02.0", "8086", "154c", VF, 0, CARD.address, extra_info={"parent_ifname": "ens1f0", "vf_num": "0"}
    ),
    PciDevice(
        "0000:81:02.1", "8086", "154c", VF, 0, CARD.address, extra_info={"parent_ifname": "ens1f0", "vf_num": "1"}
    ),
    PciDevice("0000:c1:00.0", "15b3", "101d", PF, 1, extra_info={"ifname": "ens2f0"}),
    PciDevice("0000:c1:02.0", "15b3", "101e", VF, 1, "0000:c1:00.0", extra_info={"parent_ifname": "ens2f0"}),
    PciDevice("0000:c1:02.1", "15b3", "101e", VDPA, 1, "0000:c1:00.0", extra_info={"parent_ifname": "ens2f0"}),
]


def tagged(*specs: str) -> list[PciDevice]:
    return devices_for_guests([dataclasses.replace(each) for each in ALL], device_specs(specs))


def port(vnic_type: str = "direct", **more: Any) -> dict[str, Any]:
    return {"id": "port-1", "binding:vnic_type": vnic_type, **more}


def asked(vnic_type: str = "direct", network: str | None = "physnet1", **more: Any) -> InstancePCIRequest:
    found = port_devices.request_of(port(vnic_type, **more), network)
    assert found is not None
    return found


PHYSNET1 = '{"devname": "ens1f0", "physical_network": "physnet1"}'


@pytest.mark.parametrize(
    ("spec", "addresses"),
    [
        (PHYSNET1, ["0000:81:00.0", "0000:81:02.0", "0000:81:02.1"]),
        ('{"address": "0000:81:00.0"}', ["0000:81:00.0", "0000:81:02.0", "0000:81:02.1"]),
        ('{"address": "0000:81:02.*"}', ["0000:81:02.0", "0000:81:02.1"]),
        ('{"address": {"bus": "c1", "function": "[0-1]", "slot": "02"}}', ["0000:c1:02.0", "0000:c1:02.1"]),
        ('{"vendor_id": "0x15b3", "product_id": "101e"}', ["0000:c1:02.0", "0000:c1:02.1"]),
        ('[{"product_id": "1572"}, {"product_id": "101d"}]', ["0000:81:00.0", "0000:c1:00.0"]),
    ],
)
def test_a_specification_names_its_devices(spec: str, addresses: list[str]) -> None:
    assert [device.address for device in tagged(spec)] == addresses


@pytest.mark.parametrize(
    "spec",
    [
        '{"address": 5}',
        '{"address": {"bus": "["}}',
        '{"address": {"wheel": "1"}}',
        '{"devname": "ens1f0", "address": "0000:81:00.0"}',
        '{"devname": 5}',
        '{"trusted": "perhaps"}',
    ],
)
def test_what_is_no_specification_is_refused(spec: str) -> None:
    with pytest.raises(ValueError, match="is not a description of devices"):
        device_specs([spec])


@pytest.mark.parametrize(
    ("request_", "address"),
    [
        (asked(), "0000:81:02.0"),
        (asked("macvtap"), "0000:81:02.0"),
        (asked("direct-physical"), "0000:81:00.0"),
        (asked("direct", None), "0000:c1:02.0"),
        (asked("vdpa", None), "0000:c1:02.1"),
    ],
)
def test_a_port_gets_a_device_of_its_kind(request_: InstancePCIRequest, address: str) -> None:
    devices = tagged(PHYSNET1, '{"devname": "ens2f0", "physical_network": null}')
    (taken,) = take_devices([request_], devices, None)
    assert (taken.address, taken.request_id) == (address, "port-1")
    there = pools(devices)
    take_from_pools([request_], there, None)
    assert sum(pool.count for pool in there) == len(devices) - 1


@pytest.mark.parametrize("vnic_type", ["direct", "direct-physical", "vdpa", "remote-managed"])
def test_a_device_of_no_named_network_serves_none(vnic_type: str) -> None:
    devices = tagged("{}")
    for network in ("physnet1", None):
        with pytest.raises(Misfit):
            take_devices([asked(vnic_type, network)], devices, None)
        with pytest.raises(Misfit, match="for the network of port port-1"):
            take_from_pools([asked(vnic_type, network)], pools(devices), None)


def test_trusted_and_remote_managed_functions_serve_their_ports() -> None:
    plain, trusted = tagged(PHYSNET1), tagged('{"devname": "ens1f0", "physical_network": "physnet1", "trusted": true}')
    profile: dict[str, Any] = {"binding:profile": {"trusted": "True"}}
    wants_trust = asked(**profile)
    assert take_devices([asked()], trusted, None)
    assert take_devices([wants_trust], trusted, None)
    assert take_devices([asked(trusted=True)], trusted, None)
    with pytest.raises(Misfit):
        take_devices([wants_trust], plain, None)
    managed = tagged('{"devname": "ens1f0", "physical_network": "physnet1", "remote_managed": "true"}')
    assert take_devices([asked("remote-managed")], managed, None)
    for refused, devices in ((asked("remote-managed"), plain), (asked(), managed)):
        with pytest.raises(Misfit):
            take_devices([refused], devices, None)


def test_a_card_is_taken_only_by_name() -> None:
    devices = tagged('{"address": "0000:81:00.0"}')
    anything = InstancePCIRequest("alias", 1, [{"vendor_id": "8086"}], alias_name="nic")
    assert take_devices([anything], devices, None)[0].dev_type == VF
    with pytest.raises(Misfit):
        take_devices([anything], devices[:1], None)


def test_functions_of_one_card_are_one_pool() -> None:
    assert sorted(pool.count for pool in pools(tagged(PHYSNET1))) == [1, 2]


def test_a_port_gets_a_function_of_the_interface_that_gives_its_bandwidth() -> None:
    devices = tagged('{"devname": "ens1f0", "physical_network": "p"}', '{"devname": "ens2f0", "physical_network": "p"}')
    (first,) = take_devices([asked(network="p")], devices, None)
    (second,) = take_devices([port_devices.under(asked(network="p"), "ens2f0")], devices, None)
    assert (first.parent_addr, second.parent_addr) == ("0000:81:00.0", "0000:c1:00.0")
    bandwidth = {"required": [], "resources": {"NET_BW_EGR_KILOBIT_PER_SEC": 1000}}
    packets = {"required": [], "resources": {"NET_PACKET_RATE_KILOPACKET_PER_SEC": 1}}
    groups = {"request_groups": [{"id": "a", **packets}, {"id": "b", **bandwidth}], "same_subtree": ["a", "b"]}
    both, none = resource_request_of("port-1", groups), resource_request_of("port-1", packets)
    assert both is not None and none is not None
    assert both.provider_of_bandwidth({"a": ["agent"], "b": ["card"]}) == "card"
    assert none.provider_of_bandwidth({"port-1": ["agent"]}) is None


def test_the_policy_of_a_port_goes_before_the_flavors() -> None:
    own, none = asked(numa_affinity_policy="preferred"), asked()
    found = port_devices.with_policy([own, none], "required")
    assert [request.numa_policy for request in found] == ["preferred", "required"]
    # A flavor that says nothing later leaves nothing of it.
    again = port_devices.with_policy(found, None)
    assert [request.numa_policy for request in again] == ["preferred", None]


def test_ports_of_other_kinds_need_no_device() -> None:
    for vnic_type in ("normal", "baremetal", "smart-nic", None):
        assert port_devices.request_of({"id": "port-1", "binding:vnic_type": vnic_type}, "physnet1") is None


def test_the_network_service_gets_the_device_and_its_card() -> None:
    card, function = tagged(PHYSNET1)[:2]
    assert port_devices.profile_of(card) == {
        "pci_vendor_info": "8086:1572",
        "pci_slot": "0000:81:00.0",
        "physical_network": "physnet1",
        "device_mac_address": "02:00:00:00:00:01",
    }
    function.extra_info |= {"card_serial_number": "MT1", "pf_mac_address": "02:00:00:00:00:01"}
    reported = port_devices.profile_of(function)
    assert (reported["card_serial_number"], reported["pf_mac_address"], reported["vf_num"]) == (
        "MT1",
        "02:00:00:00:00:01",
        0,
    )
    kept = {"trusted": "true", "capabilities": ["switchdev"]}
    assert port_devices.with_device({**kept, **reported}, card) == kept | port_devices.profile_of(card)
    assert port_devices.with_device({**kept, **reported}, None) == kept


@pytest.mark.parametrize(
    ("network", "physical"),
    [
        ({"provider:physical_network": "physnet1"}, "physnet1"),
        ({"provider:physical_network": None}, None),
        ({}, None),
        ({"segments": [{"provider:physical_network": None}, {"provider:physical_network": "physnet2"}]}, "physnet2"),
    ],
)
def test_a_network_names_its_physical_network(network: dict[str, Any], physical: str | None) -> None:
    assert physical_network_of(network) == physical
