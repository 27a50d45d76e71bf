"""The host's NUMA cells and PCI devices, as libvirt describes them.

Source: libvirt, "Capabilities XML" (topology of the host) and "Node device XML" (capabilities ``pci``, ``net``, ``vdpa``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from xml.etree import ElementTree as ET

from causeway.hardware import cpus
from causeway.model.numa import NUMACell, NUMAPagesTopology
from causeway.model.pci import PciDevice, PciDeviceType
from causeway.virt.driver import HostHardware

# libvirt.VIR_CONNECT_LIST_NODE_DEVICES_CAP_PCI_DEV, _NET, _VDPA: its bindings are not there on hosts without libvirt.
_DEVICES = 1 << 1 | 1 << 4 | 1 << 17


def host_hardware(connection: Any) -> HostHardware:
    described = [device.XMLDesc(0) for device in connection.listAllDevices(_DEVICES)]
    return HostHardware(numa_cells(connection.getCapabilities()), pci_devices(described))


def pci_devices(described: Iterable[str]) -> list[PciDevice]:
    """The PCI devices that guests may be given, among ``described`` (the XML of node devices).

    Network interfaces and vDPA devices among them add to what is known of their PCI device.
    """
    elements = [ET.fromstring(xml) for xml in described]
    found = {device.label: device for device in map(_pci_device, elements) if device is not None}
    by_address = {device.address: device for device in found.values()}
    for element in elements:
        parent = found.get(element.findtext("parent"))
        interface = element.find("capability[@type='net']")
        vdpa = element.find("capability[@type='vdpa']")
        if parent is not None and interface is not None:
            parent.extra_info["ifname"] = interface.findtext("interface") or ""
            parent.extra_info["mac_address"] = interface.findtext("address") or ""
        elif parent is not None and vdpa is not None:
            # The host's own driver uses the function. Guests get the vDPA device that the driver makes of it.
            parent.dev_type = PciDeviceType.VDPA
            parent.extra_info["vdpa_device"] = vdpa.findtext("chardev") or ""
    for element in elements:
        _number_functions(element, by_address)
    for device in found.values():
        physical = by_address.get(device.parent_addr or "")
        if physical is not None:
            _note_parent(device, physical)
    return list(found.values())


def _number_functions(element: ET.Element, by_address: dict[str, PciDevice]) -> None:
    """Numbers the virtual functions of a physical one, in the order in which libvirt lists them."""
    path = "capability[@type='pci']/capability[@type='virt_functions']/address"
    for number, address in enumerate(element.iterfind(path)):
        function = by_address.get(_address_of(address))
        if function is not None:
            function.extra_info["vf_num"] = str(number)


def _note_parent(device: PciDevice, physical: PciDevice) -> None:
    copied = {"parent_ifname": "ifname", "pf_mac_address": "mac_address", "card_serial_number": "card_serial_number"}
    for name, of_parent in copied.items():
        if of_parent in physical.extra_info:
            device.extra_info.setdefault(name, physical.extra_info[of_parent])


def numa_cells(capabilities: str) -> list[NUMACell]:
    """The NUMA cells in the capabilities of a host; empty: it names none."""
    return [_cell(cell) for cell in ET.fromstring(capabilities).iterfind("host/topology/cells/cell")]


def _cell(cell: ET.Element) -> NUMACell:
    there = [cpu for cpu in cell.iterfind("cpus/cpu") if cpu.get("id") is not None]
    cores = {tuple(sorted(cpus.parse(cpu.get("siblings") or cpu.get("id") or ""))) for cpu in there}
    memory = cell.find("memory")
    return NUMACell(
        id=int(cell.get("id", "0")),
        cpuset=sorted(int(cpu.get("id", "0")) for cpu in there),
        pcpuset=[],
        memory=_kib(memory) // 1024 if memory is not None else 0,
        mempages=[
            NUMAPagesTopology(int(pages.get("size", "4")), int(pages.text or 0)) for pages in cell.iterfind("pages")
        ],
        siblings=sorted(list(core) for core in cores if len(core) > 1),
    )


def _kib(memory: ET.Element) -> int:
    factor = {"b": 1 / 1024, "KiB": 1, "MiB": 1024, "GiB": 1024**2}.get(memory.get("unit", "KiB"), 1)
    return int(int(memory.text or 0) * factor)


def _pci_device(device: ET.Element) -> PciDevice | None:
    """None: it is a bridge, or no PCI device."""
    capability = device.find("capability[@type='pci']")
    if capability is None or capability.find("capability[@type='pci-bridge']") is not None:
        return None
    numa = capability.find("numa")
    function = capability.find("capability[@type='phys_function']/address")
    kind = PciDeviceType.STANDARD
    if function is not None:
        kind = PciDeviceType.SRIOV_VF
    elif capability.find("capability[@type='virt_functions']") is not None:
        kind = PciDeviceType.SRIOV_PF
    numbers = {name: int(capability.findtext(name) or "0", 0) for name in ("domain", "bus", "slot", "function")}
    serial = capability.findtext("capability[@type='vpd']/fields/serial_number")
    return PciDevice(
        address=_address(numbers),
        vendor_id=_id(capability.find("vendor")),
        product_id=_id(capability.find("product")),
        dev_type=kind,
        numa_node=int(numa.get("node", "0")) if numa is not None else None,
        parent_addr=_address_of(function) if function is not None else None,
        label=device.findtext("name"),
        extra_info={"card_serial_number": serial} if serial else {},
    )


def _id(element: ET.Element | None) -> str:
    return (element.get("id", "0x0000") if element is not None else "0x0000").removeprefix("0x")


def _address_of(element: ET.Element) -> str:
    return _address({name: int(value, 0) for name, value in element.attrib.items()})


def _address(numbers: dict[str, int]) -> str:
    return f"{numbers['domain']:04x}:{numbers['bus']:02x}:{numbers['slot']:02x}.{numbers['function']:x}"
