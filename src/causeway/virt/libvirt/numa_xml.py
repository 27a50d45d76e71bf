"""NUMA cells, pinned CPUs, huge pages and PCI devices in a guest's XML.

Source: libvirt, "Domain XML format": CPU tuning, NUMA node tuning, memory backing, host device assignment.
"""

from __future__ import annotations

from xml.etree import ElementTree as ET

from causeway.hardware import cpus
from causeway.model.numa import InstanceNUMACell, InstanceNUMATopology
from causeway.model.pci import PciDevice

_SMALL_PAGE_KIB = 4


def add_tuning(domain: ET.Element, topology: InstanceNUMATopology) -> None:
    """Adds ``memoryBacking``, ``cputune`` and ``numatune``."""
    huge = [(number, cell.pagesize) for number, cell in enumerate(topology.cells) if _is_huge(cell)]
    if huge:
        backing = ET.SubElement(domain, "memoryBacking")
        pages = ET.SubElement(backing, "hugepages")
        for number, size in huge:
            ET.SubElement(pages, "page", size=str(size), unit="KiB", nodeset=str(number))
        ET.SubElement(backing, "nosharepages")
    places = _places(topology)
    if places:
        tune = ET.SubElement(domain, "cputune")
        for cpu, allowed in sorted(places.items()):
            ET.SubElement(tune, "vcpupin", vcpu=str(cpu), cpuset=cpus.text(allowed))
        ET.SubElement(tune, "emulatorpin", cpuset=cpus.text({cpu for allowed in places.values() for cpu in allowed}))
    tune = ET.SubElement(domain, "numatune")
    ET.SubElement(tune, "memory", mode="strict", nodeset=cpus.text({cell.id for cell in topology.cells}))
    for number, cell in enumerate(topology.cells):
        ET.SubElement(tune, "memnode", cellid=str(number), mode="strict", nodeset=str(cell.id))


def _is_huge(cell: InstanceNUMACell) -> bool:
    return cell.pagesize is not None and cell.pagesize > _SMALL_PAGE_KIB


def _places(topology: InstanceNUMATopology) -> dict[int, list[int]]:
    """CPU of the guest -> the CPUs of the host that it may run on."""
    found: dict[int, list[int]] = {}
    for cell in topology.cells:
        found.update({cpu: [host] for cpu, host in cell.cpu_pinning.items()})
        if cell.shared_on:
            found.update(dict.fromkeys(cell.cpuset, cell.shared_on))
    return found


def add_cells(cpu: ET.Element, topology: InstanceNUMATopology) -> None:
    """Adds the cells that the guest sees. They are numbered from 0, whatever the numbers of the host's cells are."""
    numa = ET.SubElement(cpu, "numa")
    for number, cell in enumerate(topology.cells):
        shown = ET.SubElement(
            numa,
            "cell",
            id=str(number),
            cpus=cpus.text([*cell.cpuset, *cell.pcpuset]),
            memory=str(cell.memory * 1024),
            unit="KiB",
        )
        if _is_huge(cell):
            # A port of Open vSwitch with DPDK may be attached later.
            shown.set("memAccess", "shared")


def hostdev(device: PciDevice) -> ET.Element:
    """A PCI device of the host in the guest. libvirt detaches it from the host's driver and returns it later (``managed``)."""
    element = ET.Element("hostdev", mode="subsystem", type="pci", managed="yes")
    pci_address(ET.SubElement(element, "source"), device.address)
    return element


def pci_address(source: ET.Element, text: str, **more: str) -> None:
    """Adds the PCI address ``text`` (``0000:01:00.1``), with ``more`` attributes."""
    domain, bus, rest = text.split(":")
    slot, function = rest.split(".")
    given = {"domain": f"0x{domain}", "bus": f"0x{bus}", "slot": f"0x{slot}", "function": f"0x{function}"}
    ET.SubElement(source, "address", more | given)
