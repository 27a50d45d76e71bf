"""SR-IOV ports as libvirt gets them, and virtual functions as the host's kernel shows them."""

from __future__ import annotations

import dataclasses
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from causeway.errors import GuestFailed
from causeway.model.network import Vif
from causeway.virt.libvirt import port_devices
from causeway.virt.libvirt.guest_xml.domain_xml import interface_xml

SLOT, CARD = "0000:81:02.1", "0000:81:00.0"
PORT = Vif(
    id="3f0c9f0a-aaaa-bbbb-cccc-000000000001",
    address="fa:16:3e:aa:bb:cc",
    network_id="7c0e0000-1111-2222-3333-444444444444",
    vnic_type="direct",
    vif_type="hw_veb",
    details={"vlan": "101"},
    profile={"pci_slot": SLOT, "pci_vendor_info": "8086:154c", "physical_network": "physnet1"},
)


def port(**changes: Any) -> Vif:
    return dataclasses.replace(PORT, **changes)


@pytest.fixture
def devices(tmp_path: Path) -> Path:
    """A card with two functions, as below /sys/bus/pci/devices."""
    for slot, interface in ((CARD, "ens1f0"), ("0000:81:02.0", "ens1f0v0"), (SLOT, "ens1f0v1")):
        (tmp_path / slot / "net" / interface).mkdir(parents=True)
    for number, slot in enumerate(("0000:81:02.0", SLOT)):
        (tmp_path / CARD / f"virtfn{number}").symlink_to(tmp_path / slot)
        (tmp_path / slot / "physfn").symlink_to(tmp_path / CARD)
    return tmp_path


def address_of(element: ET.Element) -> dict[str, str]:
    address = element.find("source/address")
    assert address is not None
    return dict(address.attrib)


@pytest.mark.parametrize("vnic_type", ["direct", "remote-managed"])
def test_a_function_of_a_card_is_a_hostdev_interface(vnic_type: str) -> None:
    element = ET.fromstring(interface_xml(port(vnic_type=vnic_type)))
    assert (element.tag, element.get("type"), element.get("managed")) == ("interface", "hostdev", "yes")
    assert address_of(element) == {
        "type": "pci",
        "domain": "0x0000",
        "bus": "0x81",
        "slot": "0x02",
        "function": "0x1",
    }
    assert element.find("mac[@address='fa:16:3e:aa:bb:cc']") is not None
    assert element.find("vlan/tag[@id='101']") is not None
    assert ET.fromstring(interface_xml(port(details={}))).find("vlan") is None


def test_a_macvtap_port_is_a_direct_interface(devices: Path) -> None:
    element = port_devices.element(port(vnic_type="macvtap"), devices)
    assert (element.tag, element.get("type")) == ("interface", "direct")
    assert element.find("source[@dev='ens1f0v1'][@mode='passthrough']") is not None
    assert element.find("mac[@address='fa:16:3e:aa:bb:cc']") is not None
    with pytest.raises(GuestFailed, match="has no network interface on this host"):
        port_devices.element(port(vnic_type="macvtap", profile={"pci_slot": "0000:00:00.0"}), devices)


def test_a_whole_card_is_a_hostdev() -> None:
    whole = port(vif_type="hostdev_physical", vnic_type="direct-physical", profile={"pci_slot": CARD})
    element = ET.fromstring(interface_xml(whole))
    assert (element.tag, element.get("managed")) == ("hostdev", "yes")
    assert (address_of(element)["bus"], address_of(element)["slot"]) == ("0x81", "0x00")
    domain = f"<domain><devices>{ET.tostring(element, encoding='unicode')}</devices></domain>"
    assert port_devices.device_of_port(domain, whole) is not None
    assert port_devices.device_of_port(domain, port(vif_type="hostdev_physical")) is None


def test_a_vdpa_device_is_found_by_its_slot(devices: Path) -> None:
    (devices / SLOT / "vdpa3" / "vhost-vdpa-7").mkdir(parents=True)
    element = port_devices.element(port(vnic_type="vdpa"), devices)
    assert (element.get("type"), element.find("source[@dev='/dev/vhost-vdpa-7']") is not None) == ("vdpa", True)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"profile": {}}, "has no device: its binding names none"),
        ({"vif_type": "ovs"}, "has the binding type 'ovs', which this hypervisor can't plug"),
        ({"vif_type": "binding_failed"}, "which this hypervisor can't plug"),
        ({"vnic_type": "virtio-forwarder"}, "is of vnic_type 'virtio-forwarder', which this hypervisor can't plug"),
    ],
)
def test_what_can_not_be_plugged(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(GuestFailed, match=why):
        interface_xml(port(**changes))


def test_a_guest_finds_its_port_again() -> None:
    domain = f"<domain><devices>{interface_xml(PORT)}</devices></domain>"
    assert port_devices.device_of_port(domain, port(address=PORT.address.upper())) is not None
    assert port_devices.device_of_port(domain, port(address="fa:16:3e:00:00:00")) is None


@pytest.mark.parametrize("vnic_type", ["direct", "macvtap", "vdpa"])
def test_of_two_ports_with_the_same_address_the_device_is_found(devices: Path, vnic_type: str) -> None:
    """As the ports of a failover have it (net_failover of Linux)."""
    (devices / SLOT / "vdpa3" / "vhost-vdpa-7").mkdir(parents=True)
    device = port(vnic_type=vnic_type)
    plain = port(vnic_type="normal", vif_type="bridge", details={"bridge_name": "br0"})
    here = ET.tostring(port_devices.element(device, devices), encoding="unicode")
    xml = f"<domain><devices>{interface_xml(plain)}{here}</devices></domain>"
    types = {"direct": "hostdev", "macvtap": "direct", "vdpa": "vdpa"}
    assert ET.fromstring(port_devices.device_of_port(xml, device) or "").get("type") == types[vnic_type]
    assert ET.fromstring(port_devices.device_of_port(xml, plain) or "").get("type") == "bridge"
    assert port_devices.addresses_of_devices(xml) == [PORT.address]
    without = f"<domain><devices>{interface_xml(plain)}</devices></domain>"
    assert port_devices.device_of_port(without, device) is None
    assert port_devices.addresses_of_devices(without) == []


def test_functions_are_set_up_on_their_card(devices: Path) -> None:
    commands: list[str] = []

    def run(command: Sequence[str]) -> None:
        commands.append(" ".join(command))

    port_devices.plug(PORT, devices, run)
    assert commands == []
    port_devices.plug(port(profile={**PORT.profile, "trusted": "true"}), devices, run)
    assert commands == ["ip link set ens1f0 vf 1 trust on"]
    commands.clear()
    port_devices.plug(port(vnic_type="macvtap"), devices, run)
    assert commands == [
        "ip link set ens1f0 vf 1 mac fa:16:3e:aa:bb:cc vlan 101",
        "ip link set ens1f0v1 up",
    ]
    commands.clear()
    port_devices.unplug(port(vnic_type="macvtap"), devices, run)
    assert commands == [
        "ip link set ens1f0 vf 1 mac 00:00:00:00:00:00 vlan 0",
        "ip link set ens1f0 vf 1 trust off",
    ]
    # Gone: nothing to set up any more.
    port_devices.unplug(port(profile={"pci_slot": "0000:00:00.0"}), devices, run)


def test_a_card_that_refuses_is_named(devices: Path) -> None:
    def refuse(command: Sequence[str]) -> None:
        raise subprocess.CalledProcessError(2, list(command))

    with pytest.raises(GuestFailed, match=f"function of port {PORT.id} could not be set up") as refused:
        port_devices.plug(port(profile={**PORT.profile, "trusted": "true"}), devices, refuse)
    assert "ip link set ens1f0 vf 1 trust on" in refused.value.details
