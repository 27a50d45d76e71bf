"""Ports of Open vSwitch with DPDK, as os-vif and libvirt get them. No such switch was there to try them."""

from __future__ import annotations

import dataclasses
from typing import Any
from xml.etree import ElementTree as ET

import os_vif
import pytest
from os_vif.objects import vif as os_vif_objects

from causeway.errors import GuestFailed
from causeway.hardware.guest_devices import GuestDevices
from causeway.hardware.port_plugs import is_wired_before_activation
from causeway.model.numa import InstanceNUMACell, InstanceNUMATopology
from causeway.virt.libvirt.guest_xml.domain_xml import GuestHardware, domain_xml
from causeway.virt.libvirt.network import Ports
from causeway.virt.libvirt.vhost_user import require_shared_memory
from tests.security.bindings.sockets import port_at_socket
from tests.security.definitions.guests import hardware

SERVER = "11111111-2222-3333-4444-555555555555"
HUGE, SMALL = 2048, 4


def guest_with(pages: int | None) -> GuestHardware:
    cell = InstanceNUMACell(id=0, cpuset=[0], pcpuset=[], memory=128, pagesize=pages)
    topology = None if pages is None else InstanceNUMATopology(cells=[cell])
    return dataclasses.replace(hardware("q35"), vifs=[port_at_socket()], numa_topology=topology)


def test_os_vif_makes_the_port_at_its_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []
    monkeypatch.setattr(os_vif, "plug", lambda vif, _guest: given.append(vif))
    monkeypatch.setattr(os_vif, "unplug", lambda vif, _guest: given.append(vif))
    Ports(None).plug(SERVER, port_at_socket())
    Ports(None).unplug(SERVER, port_at_socket())
    for port in given:
        assert isinstance(port, os_vif_objects.VIFVHostUser)
        assert (port.plugin, port.mode, port.vif_name) == ("ovs", "server", "vhu22222222-22")
        assert port.path == "/var/run/openvswitch/vhu22222222-22"
        assert port.port_profile.datapath_type == "netdev"
    assert len(given) == 2


def test_the_socket_of_another_port_is_refused() -> None:
    foreign = port_at_socket(vhostuser_socket="/var/run/openvswitch/vhu33333333-33")
    with pytest.raises(GuestFailed, match="as its binding says"):
        Ports(None).plug(SERVER, foreign)


def test_a_guest_finds_the_switch_at_the_socket_of_its_port() -> None:
    found = ET.fromstring(domain_xml(guest_with(HUGE))).findall("devices/interface[@type='vhostuser']")
    (port,) = found
    source, model = port.find("source"), port.find("model")
    assert source is not None and model is not None
    assert source.attrib == {"type": "unix", "path": "/var/run/openvswitch/vhu22222222-22", "mode": "server"}
    assert model.get("type") == "virtio"
    assert port.find("driver") is None


def test_a_port_at_a_socket_has_as_many_queues_as_its_guest() -> None:
    guest = dataclasses.replace(guest_with(HUGE), vcpus=2, devices=GuestDevices(has_queues=True))
    driver = ET.fromstring(domain_xml(guest)).find("devices/interface[@type='vhostuser']/driver")
    assert driver is not None and driver.get("queues") == "2"


@pytest.mark.parametrize("pages", [None, SMALL])
def test_a_guest_whose_memory_the_switch_can_not_read_is_not_made(pages: int | None) -> None:
    with pytest.raises(GuestFailed) as failure:
        domain_xml(guest_with(pages))
    assert "hw:mem_page_size" in failure.value.details


def test_a_port_at_a_socket_is_attached_only_to_a_guest_that_shares_its_memory() -> None:
    shared, own = (
        ET.fromstring(domain_xml(dataclasses.replace(guest_with(pages), vifs=[]))) for pages in (HUGE, SMALL)
    )
    require_shared_memory(port_at_socket(), shared)
    with pytest.raises(GuestFailed):
        require_shared_memory(port_at_socket(), own)


def test_a_live_migration_waits_for_a_port_at_a_socket() -> None:
    port = port_at_socket()
    assert is_wired_before_activation(port.vif_type, port.details)
