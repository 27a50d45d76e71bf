"""What simulated hosts have: NUMA cells, PCI devices, a link to other hosts, a clock, and guests with habits."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from oslo_config import cfg

from causeway import clock
from causeway.clock import Clock
from causeway.model.numa import NUMACell, NUMAPagesTopology
from causeway.model.pci import PciDevice, PciDeviceType
from causeway.virt.driver import HostHardware
from causeway.virt.simulated.habits import Habits

_ADDRESS = r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"
_DEVICE = re.compile(rf"({_ADDRESS})=([0-9a-f]{{4}}):([0-9a-f]{{4}})(?:@(\d+))?((?:/[a-z]+:[^/]+)*)")
_SMALL_KIB = 4
_MIB = 1 << 20


@dataclass
class SimulatedHardware:
    """``huge_pages``: size in KiB -> number in each cell. Each cell has the same share of the host's CPUs and memory."""

    vcpus: int = 64
    memory_mb: int = 262144
    local_gb: int = 4096
    numa_nodes: int = 1
    threads: int = 1
    huge_pages: dict[int, int] = field(default_factory=dict)
    pci_devices: list[PciDevice] = field(default_factory=list)
    #: bytes per second (0: no limit), and seconds
    link_speed: float = 0.0
    link_latency: float = 0.0
    habits: Habits = field(default_factory=Habits)
    clock: Clock = field(default_factory=Clock)


def from_options(conf: cfg.ConfigOpts) -> SimulatedHardware:
    """The hardware that the options in [simulated] describe. Raises ValueError for an option that can't be read."""
    options = conf.simulated
    pages = dict(text.split(":", 1) for text in options.huge_pages)
    return SimulatedHardware(
        vcpus=options.vcpus,
        memory_mb=options.memory_mb,
        local_gb=options.local_gb,
        numa_nodes=options.numa_nodes,
        threads=options.threads,
        huge_pages={int(size): int(number) for size, number in pages.items()},
        pci_devices=_devices(options.pci_devices),
        link_speed=options.link_bandwidth * _MIB,
        link_latency=options.link_latency,
        habits=Habits(
            data=options.guest_data * 1024 * _MIB,
            disk_rate=options.guest_disk_rate * _MIB,
            memory_rate=options.guest_memory_rate * _MIB,
        ),
        clock=clock.of(options.clock, options.clock_speed),
    )


def _devices(texts: list[str]) -> list[PciDevice]:
    devices: dict[str, PciDevice] = {}
    for text in texts:
        match = _DEVICE.fullmatch(text.strip())
        more = dict(part.split(":", 1) for part in match[5].split("/")[1:]) if match is not None else {}
        if match is None or not set(more) <= {"pf", "vf", "vdpa", "serial"} or match[1] in devices:
            raise ValueError(f"[simulated] pci_devices: {text} is not a device")
        device = PciDevice(match[1], match[2], match[3], numa_node=int(match[4]) if match[4] is not None else None)
        if "pf" in more:
            device.dev_type = PciDeviceType.SRIOV_PF
            device.extra_info = {"ifname": more["pf"], "mac_address": _mac(device.address)}
        elif "vf" in more or "vdpa" in more:
            _be_child(device, devices.get(more.get("vf") or more["vdpa"]), text, is_vdpa="vdpa" in more)
        if "serial" in more:
            device.extra_info["card_serial_number"] = more["serial"]
        devices[device.address] = device
    return list(devices.values())


def _be_child(device: PciDevice, parent: PciDevice | None, text: str, *, is_vdpa: bool) -> None:
    """Makes the device a virtual function of ``parent``, which must come before it in the option."""
    if parent is None or parent.dev_type != PciDeviceType.SRIOV_PF:
        raise ValueError(f"[simulated] pci_devices: {text} has no physical function before it")
    device.dev_type = PciDeviceType.VDPA if is_vdpa else PciDeviceType.SRIOV_VF
    device.parent_addr = parent.address
    device.extra_info = {
        "parent_ifname": parent.extra_info["ifname"],
        "pf_mac_address": parent.extra_info["mac_address"],
    }
    _bus, _slot, rest = device.address.split(":", 2)
    slot, function = rest.split(".")
    device.extra_info["vf_num"] = str(int(slot, 16) % 16 * 8 + int(function))


def _mac(address: str) -> str:
    """The MAC address of a PCI device: always the same for the same PCI address."""
    digits = re.sub("[^0-9a-f]", "", address)[-9:].rjust(10, "0")
    return "02:" + ":".join(digits[place : place + 2] for place in range(0, 10, 2))


def host_hardware(hardware: SimulatedHardware) -> HostHardware:
    """The same as a driver reports it."""
    cells = []
    memory = hardware.memory_mb // hardware.numa_nodes
    per_cell = hardware.vcpus // hardware.numa_nodes
    for node in range(hardware.numa_nodes):
        cpus = list(range(node * per_cell, (node + 1) * per_cell))
        cores = [cpus[first : first + hardware.threads] for first in range(0, per_cell, hardware.threads)]
        huge_kib = sum(size * number for size, number in hardware.huge_pages.items())
        pages = [NUMAPagesTopology(_SMALL_KIB, (memory * 1024 - huge_kib) // _SMALL_KIB)]
        pages += [NUMAPagesTopology(size, number) for size, number in sorted(hardware.huge_pages.items())]
        cells.append(
            NUMACell(
                id=node,
                cpuset=cpus,
                pcpuset=[],
                memory=memory,
                mempages=pages,
                siblings=cores if hardware.threads > 1 else [],
            )
        )
    return HostHardware(cells, list(hardware.pci_devices))
