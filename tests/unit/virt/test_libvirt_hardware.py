"""NUMA cells, pinned CPUs, pages and PCI devices: as libvirt describes hosts, and as it is ordered to make guests."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from causeway.model.numa import InstanceNUMACell, InstanceNUMATopology
from causeway.model.pci import PciDevice
from causeway.virt.libvirt.capabilities.hardware import numa_cells, pci_devices
from causeway.virt.libvirt.guest_xml.domain_xml import GuestHardware, domain_xml

CAPABILITIES = """
<capabilities><host><topology><cells num='1'><cell id='1'>
  <memory unit='KiB'>2097152</memory>
  <pages unit='KiB' size='4'>262144</pages><pages unit='KiB' size='2048'>512</pages>
  <distances><sibling id='1' value='10'/></distances>
  <cpus num='4'>
    <cpu id='4' socket_id='0' core_id='0' siblings='4,6'/><cpu id='5' socket_id='0' core_id='1' siblings='5,7'/>
    <cpu id='6' socket_id='0' core_id='0' siblings='4,6'/><cpu id='7' socket_id='0' core_id='1' siblings='5,7'/>
  </cpus></cell></cells></topology></host></capabilities>
"""

VIRTUAL_FUNCTION = """
<device><name>pci_0000_81_10_2</name><capability type='pci'>
  <domain>0</domain><bus>129</bus><slot>16</slot><function>2</function>
  <product id='0x1520'>I350</product><vendor id='0x8086'>Intel</vendor>
  <capability type='phys_function'><address domain='0x0000' bus='0x81' slot='0x00' function='0x0'/></capability>
  <numa node='1'/>
</capability></device>
"""

BRIDGE = """
<device><name>pci_0000_00_01_0</name><capability type='pci'>
  <domain>0</domain><bus>0</bus><slot>1</slot><function>0</function><product id='0x0001'/><vendor id='0x1b36'/>
  <capability type='pci-bridge'/>
</capability></device>
"""


def guest(**changes: object) -> str:
    hardware = GuestHardware(
        uuid="8f1a4b0e-66c5-4d8c-9d35-2b3b0d0c0001",
        name="guest",
        title="",
        virt_type="qemu",
        vcpus=4,
        memory_mb=256,
        console_log=Path("/instances/console.log"),
    )
    for name, value in changes.items():
        setattr(hardware, name, value)
    return domain_xml(hardware)


def pinned() -> str:
    cells = [
        InstanceNUMACell(1, [], [0, 1], 128, 2048, "mixed", cpu_pinning_raw={"0": 4, "1": 6}),
        InstanceNUMACell(0, [2, 3], [], 128, 4, "mixed", shared_on=[0, 1, 2]),
    ]
    return guest(numa_topology=InstanceNUMATopology(cells), pci_devices=[PciDevice("0000:81:10.2", "8086", "1520")])


def test_cells_of_a_host_are_read() -> None:
    (cell,) = numa_cells(CAPABILITIES)
    assert (cell.id, cell.cpuset, cell.pcpuset, cell.memory) == (1, [4, 5, 6, 7], [], 2048)
    assert cell.siblings == [[4, 6], [5, 7]]
    assert [(pages.size_kb, pages.total) for pages in cell.mempages] == [(4, 262144), (2048, 512)]
    assert numa_cells("<capabilities><host/></capabilities>") == []


def test_devices_of_a_host_are_read() -> None:
    function = PciDevice(
        "0000:81:10.2", "8086", "1520", "type-VF", 1, parent_addr="0000:81:00.0", label="pci_0000_81_10_2"
    )
    assert pci_devices([VIRTUAL_FUNCTION, BRIDGE]) == [function]
    physical = VIRTUAL_FUNCTION.replace("phys_function", "virt_functions")
    (found,) = pci_devices([physical])
    assert (found.dev_type, found.parent_addr) == ("type-PF", None)


def test_a_pinned_guest_has_its_cpus_pages_and_devices() -> None:
    domain = ET.fromstring(pinned())
    pins = {pin.get("vcpu"): pin.get("cpuset") for pin in domain.iterfind("cputune/vcpupin")}
    assert pins == {"0": "4", "1": "6", "2": "0-2", "3": "0-2"}
    assert domain.find("cputune/emulatorpin[@cpuset='0-2,4,6']") is not None
    places = [(node.get("cellid"), node.get("nodeset")) for node in domain.iterfind("numatune/memnode")]
    assert places == [("0", "1"), ("1", "0")]
    cells = [(cell.get("cpus"), cell.get("memory")) for cell in domain.iterfind("cpu/numa/cell")]
    assert cells == [("0-1", "131072"), ("2-3", "131072")]
    # Only the first cell has huge pages.
    pages = [(page.get("size"), page.get("nodeset")) for page in domain.iterfind("memoryBacking/hugepages/page")]
    assert pages == [("2048", "0")]
    address = domain.find("devices/hostdev[@managed='yes']/source/address")
    assert address is not None
    assert address.attrib == {"domain": "0x0000", "bus": "0x81", "slot": "0x10", "function": "0x2"}


def test_a_guest_without_cpus_of_its_own_keeps_off_those_of_others() -> None:
    vcpu = ET.fromstring(guest(shared_cpus=[0, 1, 2, 8])).find("vcpu")
    assert vcpu is not None and (vcpu.text, vcpu.get("cpuset")) == ("4", "0-2,8")
    plain = ET.fromstring(guest())
    assert plain.find("cputune") is None and plain.find("numatune") is None and plain.find("cpu/numa") is None


@pytest.mark.skipif(
    shutil.which("virt-xml-validate") is None or shutil.which("xmllint") is None,
    reason="virt-xml-validate or xmllint is not installed",
)
def test_libvirts_own_schema_accepts_it(tmp_path: Path) -> None:
    path = tmp_path / "domain.xml"
    path.write_text(pinned())
    checked = subprocess.run(
        ["virt-xml-validate", str(path), "domain"], capture_output=True, text=True, timeout=60, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
