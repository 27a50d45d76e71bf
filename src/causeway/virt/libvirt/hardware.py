"""The host's NUMA cells and PCI devices, as libvirt describes them.

Source: libvirt, "Capabilities XML" (topology of the host) and "Node device XML" (capability ``pci``).
"""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree as ET

from causeway.hardware import cpus
from causeway.model.numa import NUMACell, NUMAPagesTopology
from causeway.model.pci import PciDevice, PciDeviceType
from causeway.virt.driver import HostHardware

# libvirt.VIR_CONNECT_LIST_NODE_DEVICES_CAP_PCI_DEV: its bindings are not there on hosts without libvirt.
_PCI_DEVICES = 1 << 1


def host_hardware(connection: Any) -> HostHardware:
    devices = [pci_device(device.XMLDesc(0)) for device in connection.listAllDevices(_PCI_DEVICES)]
    return HostHardware(numa_cells(connection.getCapabilities()), [device for device in devices if device is not None])


def numa_cells(capabilities: str) -> list[NUMACell]:
    """The cells of a host that says that it has some."""
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


def pci_device(xml: str) -> PciDevice | None:
    """A PCI device that can be given away; None for bridges."""
    device = ET.fromstring(xml)
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
    return PciDevice(
        address=_address(numbers),
        vendor_id=_id(capability.find("vendor")),
        product_id=_id(capability.find("product")),
        dev_type=kind,
        numa_node=int(numa.get("node", "0")) if numa is not None else None,
        parent_addr=_address({name: int(value, 0) for name, value in function.attrib.items()})
        if function is not None
        else None,
        label=device.findtext("name"),
    )


def _id(element: ET.Element | None) -> str:
    return (element.get("id", "0x0000") if element is not None else "0x0000").removeprefix("0x")


def _address(numbers: dict[str, int]) -> str:
    return f"{numbers['domain']:04x}:{numbers['bus']:02x}:{numbers['slot']:02x}.{numbers['function']:x}"
