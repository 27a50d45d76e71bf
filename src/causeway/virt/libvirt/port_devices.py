"""Ports that are devices of the host: virtual functions, whole cards, macvtap and vDPA devices.

Source: libvirt, "Domain XML" (network interfaces: ``hostdev``, ``direct`` and ``vdpa``); Linux, "PCI SR-IOV HOWTO" (the folders
of functions below /sys/bus/pci/devices); ip-link(8).
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

from causeway.errors import GuestFailed
from causeway.hardware.port_devices import needs_device
from causeway.model.network import Vif
from causeway.virt.libvirt.numa_xml import pci_address

# The VIF types of such ports.
FUNCTION, WHOLE_DEVICE = "hw_veb", "hostdev_physical"
_HOSTDEV = ("direct", "remote-managed")
# The types of libvirt's interfaces that are such ports.
_TYPES = ("hostdev", "direct", "vdpa")
_DEVICES = Path("/sys/bus/pci/devices")
_IP_TIMEOUT_SECONDS = 10.0


def is_device(vif: Vif) -> bool:
    """Whether the port is a device of the host.

    Raises `GuestFailed` for hardware-offloaded Open vSwitch: this driver can't plug representors.
    """
    if vif.vif_type in (FUNCTION, WHOLE_DEVICE):
        return True
    if needs_device(vif.vnic_type):
        raise GuestFailed(
            f"Port {vif.id} (vnic_type '{vif.vnic_type}') has the binding type '{vif.vif_type}', which this hypervisor can't"
            " plug."
        )
    return False


def element(vif: Vif, devices: Path = _DEVICES) -> ET.Element:
    """The XML of the port in its guest. Raises `GuestFailed` if its binding names no device, or the host does not have it."""
    slot = _slot(vif)
    if vif.vif_type == WHOLE_DEVICE:
        whole = ET.Element("hostdev", mode="subsystem", type="pci", managed="yes")
        pci_address(ET.SubElement(whole, "source"), slot)
        return whole
    if vif.vnic_type in _HOSTDEV:
        found = ET.Element("interface", type="hostdev", managed="yes")
        ET.SubElement(found, "mac", address=vif.address)
        pci_address(ET.SubElement(found, "source"), slot, type="pci")
        vlan = vlan_of(vif)
        if vlan is not None:
            ET.SubElement(ET.SubElement(found, "vlan"), "tag", id=str(vlan))
        return found
    if vif.vnic_type == "macvtap":
        found = ET.Element("interface", type="direct")
        ET.SubElement(found, "mac", address=vif.address)
        ET.SubElement(found, "source", dev=interface_of(slot, devices), mode="passthrough")
        ET.SubElement(found, "model", type="virtio")
        return found
    if vif.vnic_type == "vdpa":
        found = ET.Element("interface", type="vdpa")
        ET.SubElement(found, "mac", address=vif.address)
        ET.SubElement(found, "source", dev=_vdpa_device(slot, devices))
        ET.SubElement(found, "model", type="virtio")
        return found
    raise GuestFailed(f"Port {vif.id} is of vnic_type '{vif.vnic_type}', which this hypervisor can't plug.")


def device_of_port(xml: str, vif: Vif) -> str | None:
    """The XML of the guest's device that is this port; None: it has none. Found by MAC address, a whole card by PCI address.

    The two ports of a failover (``net_failover``) have the same MAC address, and only one of them is a device of the host.
    """
    path = "devices/hostdev" if vif.vif_type == WHOLE_DEVICE else "devices/interface"
    for device in ET.fromstring(xml).iterfind(path):
        if vif.vif_type == WHOLE_DEVICE:
            address = device.find("source/address")
            if address is not None and _address(address) == vif.profile.get("pci_slot"):
                return ET.tostring(device, encoding="unicode")
        elif (
            (mac := device.find("mac")) is not None
            and mac.get("address", "").lower() == vif.address.lower()
            and (device.get("type") in _TYPES) == needs_device(vif.vnic_type)
        ):
            return ET.tostring(device, encoding="unicode")
    return None


def addresses_of_devices(xml: str) -> list[str]:
    """The MAC addresses of the guest's ports that are devices of the host; libvirt knows none of whole cards."""
    found = [
        port.find("mac") for port in ET.fromstring(xml).iterfind("devices/interface") if port.get("type") in _TYPES
    ]
    return [mac.get("address", "").lower() for mac in found if mac is not None]


def plug(vif: Vif, devices: Path = _DEVICES, run: Callable[[Sequence[str]], None] | None = None) -> None:
    """Sets up a virtual function on its card, as far as libvirt does not. ``run``: runs a command. Raises `GuestFailed`."""
    if vif.vif_type != FUNCTION:
        return
    slot, execute = _slot(vif), run or _run
    commands: list[list[str]] = []
    if vif.vnic_type == "macvtap":
        # libvirt does this for hostdev interfaces, but not for macvtap.
        physical, number = function_of(slot, devices)
        commands.append(
            ["ip", "link", "set", physical, "vf", number, "mac", vif.address, "vlan", str(vlan_of(vif) or 0)]
        )
        commands.append(["ip", "link", "set", interface_of(slot, devices), "up"])
    if str(vif.profile.get("trusted")).lower() in ("true", "1", "yes", "on"):
        physical, number = function_of(slot, devices)
        commands.append(["ip", "link", "set", physical, "vf", number, "trust", "on"])
    for command in commands:
        try:
            execute(command)
        except (OSError, subprocess.SubprocessError) as failure:
            raise GuestFailed(
                f"The virtual function of port {vif.id} could not be set up.", details=f"{' '.join(command)}: {failure}"
            ) from failure


def unplug(vif: Vif, devices: Path = _DEVICES, run: Callable[[Sequence[str]], None] | None = None) -> None:
    """Undoes `plug`: the virtual function is not trusted, and has no MAC address and no VLAN of ours."""
    if vif.vif_type != FUNCTION or not vif.profile.get("pci_slot"):
        return
    execute = run or _run
    try:
        physical, number = function_of(vif.profile["pci_slot"], devices)
        if vif.vnic_type == "macvtap":
            execute(["ip", "link", "set", physical, "vf", number, "mac", "00:00:00:00:00:00", "vlan", "0"])
        execute(["ip", "link", "set", physical, "vf", number, "trust", "off"])
    except (GuestFailed, OSError, subprocess.SubprocessError):
        # The function is not there any more, or its driver knows no trust. `plug` sets it up for its next port.
        return


def vlan_of(vif: Vif) -> int | None:
    vlan = vif.details.get("vlan")
    return int(vlan) if vlan not in (None, "", 0, "0") else None


def interface_of(slot: str, devices: Path = _DEVICES) -> str:
    """The host's network interface of a PCI device. Raises `GuestFailed` if it has none."""
    found = sorted(path.name for path in (devices / slot / "net").glob("*"))
    if not found:
        raise GuestFailed(f"PCI device {slot} has no network interface on this host.")
    return found[0]


def function_of(slot: str, devices: Path = _DEVICES) -> tuple[str, str]:
    """(interface of the card, number on the card) of a virtual function. Raises `GuestFailed` if it is none."""
    physical = devices / slot / "physfn"
    for link in physical.glob("virtfn*"):
        if link.resolve().name == slot:
            return interface_of(physical.resolve().name, devices), link.name.removeprefix("virtfn")
    raise GuestFailed(f"PCI device {slot} is no virtual function of this host.")


def _vdpa_device(slot: str, devices: Path) -> str:
    for path in sorted((devices / slot).glob("vdpa*/vhost-vdpa-*")):
        return f"/dev/{path.name}"
    raise GuestFailed(f"PCI device {slot} has no vDPA device on this host.")


def _slot(vif: Vif) -> str:
    slot = vif.profile.get("pci_slot")
    if not slot:
        raise GuestFailed(f"Port {vif.id} has no device: its binding names none.")
    return str(slot)


def _address(found: ET.Element) -> str:
    numbers = {name: int(found.get(name, "0"), 0) for name in ("domain", "bus", "slot", "function")}
    return f"{numbers['domain']:04x}:{numbers['bus']:02x}:{numbers['slot']:02x}.{numbers['function']:x}"


def _run(command: Sequence[str]) -> None:
    subprocess.run(list(command), check=True, capture_output=True, timeout=_IP_TIMEOUT_SECONDS)
