"""A cloud of Nova 34 in which nothing blocks: the sample's rows, with all of its servers settled, mapped and on known hosts."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from causeway.adopt.check import Asked, ComputeFiles, Report, check
from tests.unit.adopt.nova_cloud import ROWS, NovaOnDisk, Row
from tests.unit.adopt.nova_schemas import NEWEST

# Shortly after the services of the sample have reported.
NOW = datetime(2026, 11, 28, 3, 46, tzinfo=UTC)
NODES = {
    "cell1-host1": "c5a5c2b4-5a60-4a7d-8d7c-000000000011",
    "cell1-host2": "c5a5c2b4-5a60-4a7d-8d7c-000000000012",
    "cell2-host1": "c5a5c2b4-5a60-4a7d-8d7c-000000000021",
    "cell2-host2": "c5a5c2b4-5a60-4a7d-8d7c-000000000022",
}
#: servers of the sample, by what they are
ACTIVE = "b355d05d-2774-4d5a-a0ce-bcb64458de24"
DATAVOL = "f3b65539-293f-4cca-b4a8-5a9029f73b9f"
VOLUME = "27256493-da0f-4b96-a7a1-e6e5cda48713"
SUSPENDED = "b801348b-0434-4783-b816-973ddf8b6d9e"
RESCUED = "5a173040-c3ff-41b7-93d7-617d973b8842"
PORT = "0132d94b-64f3-4ced-9e8b-f4d6b2b2bc32"
COMPUTE_CONF = "[DEFAULT]\ncompute_driver = libvirt.LibvirtDriver\n[libvirt]\nvirt_type = kvm\n"

Rows = dict[str, dict[str, list[Row]]]
Change = Callable[[Rows], object]


def rows() -> Rows:
    made: Rows = deepcopy(ROWS)
    _settle(made)
    for name, cell in made.items():
        if name != "api":
            _place(made, name, cell)
    _map(made)
    return made


def _settle(made: Rows) -> None:
    for name in ("cell1", "cell2"):
        for instance in made[name]["instances"]:
            instance.pop("task_state", None)
            if instance["vm_state"] == "resized":
                instance["vm_state"] = "active"
            if instance["vm_state"] == "active":
                instance["power_state"] = 1
        for migration in made[name]["migrations"]:
            migration["status"] = {"finished": "confirmed"}.get(migration["status"], migration["status"])
            if "migrating" in migration["status"]:
                migration["status"] = "reverted"


def _place(made: Rows, name: str, cell: dict[str, list[Row]]) -> None:
    services, nodes = cell.setdefault("services", []), cell.setdefault("compute_nodes", [])
    pattern = next(service for service in made["cell1"]["services"] if service["binary"] == "nova-compute")
    for host in (host for host in NODES if host.startswith(name)):
        number = 2 if host.endswith("2") else 1
        if host not in {service["host"] for service in services}:
            uuid = f"5e51ce00-0000-4000-8000-00000000000{number}"
            services.append({**pattern, "id": 70 + number, "host": host, "uuid": uuid})
        if host not in {node["host"] for node in nodes}:
            nodes.append({"id": number, "host": host, "hypervisor_hostname": host, "hypervisor_type": "QEMU"})
    for node in nodes:
        node.update(uuid=NODES[node["host"]], deleted=0)


def _map(made: Rows) -> None:
    mapped = {row["instance_uuid"] for row in made["api"]["instance_mappings"]}
    spec = made["api"]["request_specs"][0]["spec"]
    numbers = {"cell0": 1, "cell1": 2, "cell2": 3}
    for cell, number in numbers.items():
        for instance in made[cell]["instances"]:
            uuid = instance["uuid"]
            if uuid in mapped:
                continue
            more = {"id": len(made["api"]["instance_mappings"]) + 1, "instance_uuid": uuid}
            made["api"]["instance_mappings"].append({**more, "cell_id": number, "queued_for_delete": 0})
            made["api"]["request_specs"].append({**more, "spec": spec})


class CleanCloud:
    """Its databases, and a check of them. ``release``: of Nova."""

    def __init__(self, folder: Path, *changes: Change, release: int = NEWEST) -> None:
        self.folder = folder
        content = rows()
        for change in changes:
            change(content)
        self.nova = NovaOnDisk(folder, content, release=release)
        self.compute_conf = folder / "compute.conf"
        self.compute_conf.write_text(COMPUTE_CONF)

    def asked(self, **more: Any) -> Asked:
        return Asked((self.nova.conf,), ComputeFiles({"*": (self.compute_conf,)}), **more)

    def check(self, **more: Any) -> Report:
        return check(self.asked(**more), now=NOW)


def instance(content: Rows, uuid: str = ACTIVE) -> Row:
    return one(content, "instances", "uuid", uuid)


def one(content: Rows, table: str, key: str, value: Any) -> Row:
    """The row of any cell whose column has a value."""
    return next(row for name in content for row in content[name].get(table, ()) if row.get(key) == value)


def codes(report: Report, subject: str) -> set[str]:
    """The codes of what was found of a server, a host, or anything else with this id."""
    return {finding.code for finding in report.findings if finding.subject.id == subject}


__all__ = [
    "ACTIVE",
    "COMPUTE_CONF",
    "DATAVOL",
    "NODES",
    "NOW",
    "PORT",
    "RESCUED",
    "SUSPENDED",
    "VOLUME",
    "Change",
    "CleanCloud",
    "Rows",
    "codes",
    "instance",
    "one",
    "rows",
]  # fmt: skip
