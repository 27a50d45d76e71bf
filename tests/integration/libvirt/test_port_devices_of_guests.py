"""Ports that are devices of the host, in migrations of real guests.

No card with virtual functions is here, no IOMMU and no macvtap. An emulated PCI card stands in for such a port: the driver plugs
it as a port of vnic_type ``direct``, and only its XML is another one. So this shows that libvirt, QEMU and the guest's kernel
release the device, that the guest travels without it, and that it has it again where it is then. What VFIO, the driver of a
function or macvtap does is not shown.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from causeway.compute.handover.port_devices import travelling
from causeway.errors import CausewayError
from causeway.model.network import Vif
from causeway.virt.lab.hosts import missing
from causeway.virt.live_guest import LiveOptions, Presence
from tests.integration.libvirt.lab_guests import Cloud, Guest, Net
from tests.integration.libvirt.lab_journeys import TICKING, no_word
from tests.integration.libvirt.test_saved_memory import ticks_on

if missing() is None:
    from causeway.virt.libvirt import port_devices
    from causeway.virt.libvirt.driver import LibvirtDriver

pytestmark = pytest.mark.timeout(400)
HERE, THERE = "0000:81:02.0", "0000:81:02.1"


@pytest.fixture
def plugged_slots(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses of the devices that guests got."""
    slots: list[str] = []

    def stand_in(vif: Vif, _devices: Path | None = None) -> ET.Element:
        slots.append(vif.profile["pci_slot"])
        card = ET.Element("interface", type="bridge")
        ET.SubElement(card, "mac", address=vif.address)
        ET.SubElement(card, "source", bridge=vif.details["bridge_name"])
        ET.SubElement(card, "model", type="virtio")
        return card

    monkeypatch.setattr(port_devices, "element", stand_in)
    monkeypatch.setattr(port_devices, "_TYPES", ("bridge",))
    return slots


def with_device(cloud: Cloud, network: Net) -> tuple[Guest, Vif, dict[str, str]]:
    """A guest that ticks, with a port in a bridge and one that is a device."""
    port = dataclasses.replace(network.port(), vnic_type="direct", vif_type="hw_veb", profile={"pci_slot": HERE})
    guest = cloud.guest(vifs=[network.port(), port])
    guest.config_drive = TICKING
    guest.spawn()
    before = guest.wait(lambda said: "TICK id=" in said.text).last("TICK")
    assert reached(network, guest, port)
    return guest, port, before


def reached(network: Net, guest: Guest, port: Vif, times: int = 1) -> bool:
    """``times``: how often the guest has found the port on this host."""
    guest.wait(lambda said: said.text.count(f"mac={port.address}") >= times)
    return bool(network.lab.network.ping(network.id, port.fixed_ips[0].address).answered)


def has(driver: LibvirtDriver, guest: Guest, port: Vif) -> bool:
    from causeway.virt.libvirt import power

    def look(hypervisor: object) -> bool:
        domain = power.find(hypervisor, guest.uuid)
        found = [domain.XMLDesc(flags) for flags in (0, 2)]  # now, and from the next start on
        assert len({port.address in xml for xml in found}) == 1
        return port.address in found[0]

    return driver._connection.call("describe a guest", look)


def migrate(guest: Guest, target: LibvirtDriver) -> None:
    source = guest.driver
    there = target.prepare_live_target(travelling(guest.spec(guest.new_disk())), source.live_source(guest.instance))
    source.live_migrate(travelling(guest.spec()), there, LiveOptions(), no_word)


def test_a_guest_travels_without_its_device_and_has_it_again_at_its_target(
    cloud: Cloud, network: Net, plugged_slots: list[str]
) -> None:
    guest, port, before = with_device(cloud, network)
    source, target = cloud.drivers
    source.detach_interface(guest.uuid, port)
    assert not has(source, guest, port)
    # Twice is once.
    source.detach_interface(guest.uuid, port)
    migrate(guest, target)
    assert (source.presence(guest.uuid), target.presence(guest.uuid)) == (Presence.ABSENT, Presence.RUNNING)
    source.destroy(guest.uuid, guest.vifs, guest.volumes, destroy_disks=True)
    guest.driver = target
    assert not has(target, guest, port)
    for _time in range(2):
        target.attach_interface(guest.uuid, dataclasses.replace(port, profile={"pci_slot": THERE}))
    assert has(target, guest, port)
    assert plugged_slots[0] == HERE and plugged_slots[-1] == THERE
    ticks_on(guest, before)
    assert reached(network, guest, port)


def test_a_guest_that_has_its_device_does_not_leave(cloud: Cloud, network: Net, plugged_slots: list[str]) -> None:  # noqa: ARG001
    guest, port, before = with_device(cloud, network)
    source, target = cloud.drivers
    with pytest.raises(CausewayError, match="knows nothing of port"):
        migrate(guest, target)
    assert source.presence(guest.uuid) is Presence.RUNNING
    assert has(source, guest, port)
    # What a rollback does: the port that the guest still has stays one.
    source.attach_interface(guest.uuid, port)
    source.detach_interface(guest.uuid, port)
    source.attach_interface(guest.uuid, port)
    assert has(source, guest, port)
    ticks_on(guest, before)
    assert reached(network, guest, port, times=2)
