"""What simulated hosts are made of: NUMA cells, PCI devices, a link to the others, a clock; and what their guests do."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from oslo_config import cfg

from causeway import clock
from causeway.clock import Clock
from causeway.model.numa import NUMACell, NUMAPagesTopology
from causeway.model.pci import PciDevice
from causeway.virt.driver import HostHardware
from causeway.virt.simulated.habits import Habits

_DEVICE = re.compile(r"([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])=([0-9a-f]{4}):([0-9a-f]{4})(?:@(\d+))?")
_SMALL_KIB = 4
_MIB = 1 << 20


@dataclass
class SimulatedHardware:
    """``huge_pages``: size in KiB -> how many in each cell. Cells have equal parts of the host's CPUs and memory."""

    vcpus: int = 64
    memory_mb: int = 262144
    local_gb: int = 4096
    numa_nodes: int = 1
    threads: int = 1
    huge_pages: dict[int, int] = field(default_factory=dict)
    pci_devices: list[PciDevice] = field(default_factory=list)
    #: bytes per second, 0: no limit; seconds
    link_speed: float = 0.0
    link_latency: float = 0.0
    habits: Habits = field(default_factory=Habits)
    clock: Clock = field(default_factory=Clock)


def from_options(conf: cfg.ConfigOpts) -> SimulatedHardware:
    """[simulated]; raises ValueError for what can't be read."""
    options = conf.simulated
    devices = []
    for text in options.pci_devices:
        match = _DEVICE.fullmatch(text.strip())
        if match is None:
            raise ValueError(f"[simulated] pci_devices: {text} is not a device")
        node = int(match[4]) if match[4] is not None else None
        devices.append(PciDevice(match[1], match[2], match[3], numa_node=node))
    pages = dict(text.split(":", 1) for text in options.huge_pages)
    return SimulatedHardware(
        vcpus=options.vcpus,
        memory_mb=options.memory_mb,
        local_gb=options.local_gb,
        numa_nodes=options.numa_nodes,
        threads=options.threads,
        huge_pages={int(size): int(number) for size, number in pages.items()},
        pci_devices=devices,
        link_speed=options.link_bandwidth * _MIB,
        link_latency=options.link_latency,
        habits=Habits(
            data=options.guest_data * 1024 * _MIB,
            disk_rate=options.guest_disk_rate * _MIB,
            memory_rate=options.guest_memory_rate * _MIB,
        ),
        clock=clock.of(options.clock, options.clock_speed),
    )


def host_hardware(hardware: SimulatedHardware) -> HostHardware:
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
