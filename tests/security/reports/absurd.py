"""Reports of a host with one thing that no host can have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from causeway.model.certificates import CERTIFICATES_ENDING
from causeway.model.host import LIVE_MIGRATION_LACKS
from causeway.model.numa import NUMACell, NUMAPagesTopology, NUMATopology
from causeway.model.outcomes import HostReport
from causeway.model.pci import PciDevice, PciDevicePool
from causeway.model.states import PowerState

# Changes a true report.
Lie = Callable[[HostReport], None]


def of_node(name: str, value: Any) -> Lie:
    return lambda report: setattr(report.node, name, value)


def of_capability(name: str, value: Any) -> Lie:
    return lambda report: report.node.capabilities.update({name: value})


def of_report(name: str, value: Any) -> Lie:
    return lambda report: setattr(report, name, value)


def devices(count: int, **fields: Any) -> list[PciDevice]:
    given: dict[str, Any] = {"vendor_id": "8086", "product_id": "1521", **fields}
    return [PciDevice(f"0000:{n // 256 % 256:02x}:{n // 8 % 32:02x}.{n % 8}", **given) for n in range(count)]


def nested(levels: int) -> Any:
    value: Any = 1
    for _level in range(levels):
        value = [value]
    return value


def topology(**fields: Any) -> NUMATopology:
    given: dict[str, Any] = {"id": 0, "cpuset": [0], "pcpuset": [], "memory": 1024, **fields}
    return NUMATopology([NUMACell(**given)])


_HUGE = "x" * 10_000_000
_POOL: dict[str, Any] = {"vendor_id": "8086", "product_id": "1521", "dev_type": "type-PCI", "numa_node": None}

ABSURD: dict[str, Lie] = {
    **{
        f"{name} {value}": of_node(name, value)
        for name in ("hypervisor_version", "vcpus", "memory_mb", "local_gb", "running_vms")
        for value in (-1, 2**62)
    },
    **{
        f"{kind} ratio {value}": of_node(f"{kind}_allocation_ratio", value)
        for kind in ("cpu", "ram", "disk")
        for value in (-1.0, 1e308)
    },
    "ratio that is no number": of_node("cpu_allocation_ratio", float("nan")),
    "ratio without end": of_node("cpu_allocation_ratio", float("inf")),
    "service of a version below all": of_report("service_version", -1),
    "service of a version above all": of_report("service_version", 2**40),
    "node of another host": of_node("host", "cell1-host2"),
    "node without a uuid": of_node("uuid", "none"),
    "hypervisor without a name": of_node("hypervisor_hostname", ""),
    "hypervisor with lines": of_node("hypervisor_hostname", "host\n\x1b[2Jhost"),
    "hypervisor with a huge name": of_node("hypervisor_hostname", _HUGE),
    "type that is huge": of_node("hypervisor_type", _HUGE),
    "uptime that is huge": of_node("uptime", _HUGE),
    "address that is none": of_node("host_ip", "<script>"),
    "CPU that is huge": of_node("cpu_info", {"model": _HUGE}),
    "CPU that is deep": of_node("cpu_info", {"features": nested(100)}),
    "100000 supported instances": of_node("supported_instances", [["x86_64", "kvm", "hvm"]] * 100_000),
    "lacks that are no texts": of_capability(LIVE_MIGRATION_LACKS, [1, {}]),
    "lacks that are no list": of_capability(LIVE_MIGRATION_LACKS, 7),
    "certificates that are no list": of_capability(CERTIFICATES_ENDING, 7),
    "certificates without an end": of_capability(CERTIFICATES_ENDING, [{"file": "a", "subject": "b"}]),
    "certificates of no zone": of_capability(
        CERTIFICATES_ENDING, [{"file": "a", "subject": "b", "ends": "2026-01-01T00:00:00"}]
    ),
    "capability of another type": of_capability("supports_live_migration", "yes"),
    "capability that is huge": of_capability("anything", _HUGE),
    "CPUs below 0": of_node("numa_topology", topology(cpuset=[-1])),
    "NUMA memory below 0": of_node("numa_topology", topology(memory=-1)),
    "pages of no size": of_node("numa_topology", topology(mempages=[NUMAPagesTopology(0, 1)])),
    "pool of fewer than none": of_node("pci_stats", [PciDevicePool(**_POOL, count=-1)]),
    "2000 pools": of_node("pci_stats", [PciDevicePool(**_POOL, count=1)] * 2000),
    "5000 devices": of_report("pci_devices", devices(5000)),
    "a device twice": of_report("pci_devices", devices(1) * 2),
    "device at no address": of_report("pci_devices", [PciDevice("../..", "8086", "1521")]),
    "device of no type": of_report("pci_devices", devices(1, dev_type="x")),
    "device of no status": of_report("pci_devices", devices(1, status="x")),
    "devices that are huge": of_report("pci_devices", devices(1, extra_info={"a": _HUGE})),
    "20000 guests": of_report("guests", {f"guest{number}": PowerState.RUNNING for number in range(20_000)}),
    "guest with a huge name": of_report("guests", {_HUGE: PowerState.RUNNING}),
}
