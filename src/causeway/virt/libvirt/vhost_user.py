"""Ports of Open vSwitch with DPDK: switch and guest find one another at a socket, and the switch reads the guest's memory.

Source: libvirt, "Domain XML" (vhost-user interface; ``memAccess`` of NUMA cells).
"""

from __future__ import annotations

from pathlib import PurePosixPath
from xml.etree import ElementTree as ET

from causeway.errors import GuestFailed
from causeway.hardware.port_plugs import Plug, plug_of
from causeway.model.network import Vif


def is_at_socket(vif: Vif) -> bool:
    return plug_of(vif.vif_type, vif.details) is Plug.SOCKET


def socket_of(vif: Vif) -> str:
    """The path of the port's socket. Raises `GuestFailed` if it has the name of another port's."""
    path = str(vif.details.get("vhostuser_socket"))
    if PurePosixPath(path).name != ("vhu" + vif.id)[:14]:
        raise GuestFailed(f"Port {vif.id} can't be plugged as its binding says.", details=f"{path} is not its socket")
    return path


def mode_of(vif: Vif) -> str:
    """Whether the guest's emulator connects to the socket ("client"), or listens there ("server")."""
    return str(vif.details.get("vhostuser_mode"))


def interface(vif: Vif, queues: int) -> ET.Element:
    """The port in its guest's XML. The switch has the MTU. Raises `GuestFailed`."""
    element = ET.Element("interface", type="vhostuser")
    ET.SubElement(element, "mac", address=vif.address)
    ET.SubElement(element, "source", type="unix", path=socket_of(vif), mode=mode_of(vif))
    ET.SubElement(element, "model", type="virtio")
    if queues > 1:
        ET.SubElement(element, "driver", queues=str(queues))
    return element


def require_shared_memory(vif: Vif, domain: ET.Element) -> None:
    """Raises `GuestFailed` if the switch can't read all memory of the guest with this definition."""
    cells = domain.findall("cpu/numa/cell")
    if is_at_socket(vif) and not (cells and all(cell.get("memAccess") == "shared" for cell in cells)):
        raise GuestFailed(
            f"Port {vif.id} is one of Open vSwitch with DPDK, which reads the guest's memory.",
            details="Such a guest needs huge pages: a flavor with hw:mem_page_size.",
        )
