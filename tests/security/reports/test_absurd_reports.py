"""What no host can have is refused before anything of it is recorded."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from causeway import errors
from causeway.conductor.cells.cell import CellEndpoint
from causeway.conductor.cells.reports import MOST_BYTES
from causeway.conf import new_config
from causeway.context import admin_context
from causeway.model.certificates import CERTIFICATES_ENDING
from causeway.model.host import LIVE_MIGRATION_LACKS, ComputeNode
from causeway.model.numa import NUMAPagesTopology
from causeway.model.outcomes import HostReport, OperationToken
from causeway.model.states import PowerState
from causeway.store.cell import hosts, pci_devices
from causeway.store.database import Database
from causeway.virt.live_guest import LiveProgress
from tests.security.reports.absurd import ABSURD, Lie, devices, topology
from tests.unit.new_databases import new_database

HOST = "host1"
TOKEN = OperationToken("move", "migration", 1, "step")


class Cloud:
    """Notes which reports reach the cloud's records."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *_args, **_named: self.heard.append(name)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with new_database(tmp_path, "cell") as found:
        yield found


def endpoint(database: Database, cloud: Any) -> CellEndpoint:
    return CellEndpoint(new_config(), lambda: database, cloud)


def true_report() -> HostReport:
    node = ComputeNode(str(uuid.uuid4()), HOST, HOST, "simulated", 1, vcpus=4, memory_mb=4096, local_gb=40)
    return HostReport(host=HOST, service_version=1, node=node)


@pytest.mark.parametrize("lie", ABSURD.values(), ids=ABSURD)
def test_an_absurd_report_leaves_nothing(database: Database, lie: Lie, caplog: pytest.LogCaptureFixture) -> None:
    cloud, report = Cloud(), true_report()
    cell = endpoint(database, cloud)
    lie(report)
    for _again in range(3):
        with pytest.raises(errors.ReportRefused) as refusal:
            cell.report_host(admin_context(), report=report)
    assert len(refusal.value.message + (refusal.value.details or "")) < 2000
    assert hosts.list_services(database) == [] and hosts.list_nodes(database) == [] and cloud.heard == []
    assert [record.levelname for record in caplog.records] == ["ERROR"]


def test_what_a_large_host_has_is_recorded(database: Database) -> None:
    report = true_report()
    report.node.memory_mb, report.node.vcpus, report.node.cpu_allocation_ratio = 2**26, 4096, 0.0
    report.node.cpu_info = {"features": [f"feature{number}" for number in range(1000)], "topology": {"cells": 8}}
    report.node.supported_instances = [["x86_64", "kvm", "hvm"], ["i686", "kvm", "hvm"]]
    report.node.uptime, report.node.host_ip = "up 3 days", "fe80::1%eth0"
    ending = {"file": "/etc/pki/qemu/server-cert.pem", "subject": "host1", "ends": "2026-01-01T00:00:00+00:00"}
    report.node.capabilities = {
        LIVE_MIGRATION_LACKS: ["No port is open."],
        CERTIFICATES_ENDING: [ending],
        "supports_live_migration": True,
        "of_a_newer_release": {"any": ["value"]},
    }
    cpus = list(range(256))
    siblings = [[cpu, cpu + 128] for cpu in range(128)]
    report.node.numa_topology = topology(pcpuset=cpus, siblings=siblings, mempages=[NUMAPagesTopology(4, 2**24)])
    report.pci_devices = devices(1024, numa_node=-1, extra_info={"physical_network": ""})
    report.guests = {str(uuid.uuid4()): PowerState.RUNNING for _number in range(1000)}
    assert endpoint(database, Cloud()).report_host(admin_context(), report=report)
    (node,) = hosts.list_nodes(database)
    assert node.capabilities == report.node.capabilities
    assert len(pci_devices.of_node(database, node.uuid)) == 1024


@pytest.mark.parametrize("count", [-1, MOST_BYTES + 1, 2**63 - 1])
def test_bytes_that_no_transfer_has_are_not_counted(database: Database, count: int) -> None:
    """Progress of many moves is written together: one number that can't be written would lose that of all."""
    cloud = Cloud()
    cell, context = endpoint(database, cloud), admin_context()
    for done, total in ((count, 1), (1, count)):
        with pytest.raises(errors.ReportRefused):
            cell.report_progress(context, token=TOKEN, bytes_done=done, bytes_total=total)
    for name in LiveProgress().bytes_of():
        counted: Any = {name: count}
        with pytest.raises(errors.ReportRefused):
            cell.report_live_progress(context, token=TOKEN, progress=LiveProgress(**counted))
    assert cloud.heard == []
