"""What a host may not report of itself, at its cell's conductor with a real database."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from causeway import errors
from causeway.conductor.cells import reports
from causeway.conductor.cells.cell import CellEndpoint
from causeway.conf import new_config
from causeway.context import admin_context
from causeway.model.host import ComputeNode
from causeway.model.numa import NUMACell, NUMATopology
from causeway.model.outcomes import HostReport
from causeway.model.pci import PciDevice
from causeway.model.states import PowerState
from causeway.store import schema
from causeway.store.cell import hosts
from causeway.store.database import Database

Change = Callable[[HostReport], Any]


def honest() -> HostReport:
    node = ComputeNode(
        str(uuid.uuid4()),
        "host1",
        "host1.example.org",
        "QEMU",
        9_002_001,
        vcpus=256,
        memory_mb=8 * 1024**2,
        local_gb=2_000_000,
        cpu_info={"model": "EPYC", "features": [f"feature{number}" for number in range(300)]},
        host_ip="2001:db8::7",
        supported_instances=[["x86_64", "kvm", "hvm"]],
        uptime=" 09:00:00 up 400 days, load average: 0.1, 0.1, 0.1",
    )
    device = PciDevice("0000:81:00.0", "10de", "1db6", extra_info={"physical_network": "physnet1"})
    return HostReport("host1", 1, node, {str(uuid.uuid4()): PowerState.RUNNING}, [device])


def of_node(name: str, value: Any) -> Change:
    return lambda report: setattr(report.node, name, value)


def devices(*found: PciDevice) -> Change:
    return lambda report: report.pci_devices.extend(found)


def nested() -> dict[str, Any]:
    facts: dict[str, Any] = {}
    for _level in range(100_000):
        facts = {"in": facts}
    return facts


LIES: dict[str, Change] = {
    **{f"negative {name}": of_node(name, -1) for name in (*reports.NUMBERS, *reports.RATIOS)},
    **{f"too many {name}": of_node(name, most + 1) for name, most in (reports.NUMBERS | reports.RATIOS).items()},
    **{f"{name} is no number": of_node(name, float("nan")) for name in reports.RATIOS},
    **{f"{name} has no end": of_node(name, float("inf")) for name in reports.RATIOS},
    **{f"{name} is too long": of_node(name, "x" * (longest + 1)) for name, longest in reports.TEXTS.items()},
    "a node of another host": of_node("host", "host2"),
    "the node is none": of_node("uuid", "../host2"),
    "the address is a name": of_node("host_ip", "attacker.example.org"),
    "the address has more": of_node("host_ip", "192.0.2.1/../../"),
    "facts without end": of_node("cpu_info", {"model": "x" * 300_000}),
    "facts nested too deep": of_node("capabilities", nested()),
    "facts that are no JSON": of_node("capabilities", {"a": float("nan")}),
    "kinds of guests without end": of_node("supported_instances", [["x86_64", "kvm", "hvm"]] * 1_001),
    "half a kind of guests": of_node("supported_instances", [["x86_64"]]),
    "NUMA cells without end": of_node(
        "numa_topology", NUMATopology([NUMACell(number, [], [], 0) for number in range(1_025)])
    ),
    "a guest that is none": lambda report: report.guests.update({"' OR 1=1": PowerState.RUNNING}),
    "guests without end": lambda report: report.guests.update(
        {str(uuid.UUID(int=number)): PowerState.RUNNING for number in range(100_001)}
    ),
    "a version that is none": lambda report: setattr(report, "service_version", -1),
    "one device twice": devices(PciDevice("0000:81:00.0", "10de", "1db6")),
    "a device's text without end": devices(PciDevice("0000:81:00.1", "10de", "1db6", extra_info={"a": "x" * 256})),
    "a device's texts without end": devices(
        PciDevice("0000:81:00.1", "10de", "1db6", extra_info={str(number): "" for number in range(101)})
    ),
    "devices without end": devices(*(PciDevice(f"0000:81:{number}", "10de", "1db6") for number in range(10_001))),
}


@pytest.mark.parametrize("name", LIES)
def test_a_report_that_can_not_be_true_is_refused(name: str) -> None:
    report = honest()
    reports.check(report)
    LIES[name](report)
    with pytest.raises(errors.BadRequest, match="The report of host '"):
        reports.check(report)


class NoCloud:
    """Takes what a cell reports of its hosts."""

    def map_host(self, _context: Any, *, host: str) -> None:
        pass

    def host_is_back(self, _context: Any, *, host: str) -> None:
        pass


def test_nothing_of_a_refused_report_is_recorded(tmp_path: Path) -> None:
    cell_database = Database(f"sqlite:///{tmp_path}/cell.sqlite", "cell1")
    schema.sync(cell_database, "cell")
    cloud: Any = NoCloud()
    cell = CellEndpoint(new_config(), lambda: cell_database, cloud)
    report = honest()
    lie = copy.deepcopy(report)
    lie.node.memory_mb = 2**62
    with pytest.raises(errors.BadRequest, match="memory_mb"):
        cell.report_host(admin_context(), report=lie)
    assert hosts.list_nodes(cell_database) == []
    assert hosts.list_services(cell_database) == []
    assert cell.report_host(admin_context(), report=report)
    assert [node.memory_mb for node in hosts.list_nodes(cell_database)] == [report.node.memory_mb]
