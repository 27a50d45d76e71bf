"""For each code of a finding: one change of a clean cloud's rows, and of what the code is then found."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import NamedTuple

from tests.unit.adopt.check.clean_cloud import (
    ACTIVE,
    DATAVOL,
    RESCUED,
    SUSPENDED,
    VOLUME,
    Change,
    Rows,
    instance,
    one,
)
from tests.unit.adopt.nova_cloud import Row

NEW = "3d3f9a3e-7a0b-4d52-9a4e-0d1f6f9f7a11"


class Case(NamedTuple):
    code: str
    subject: str
    change: Change


def _instance(code: str, uuid: str = ACTIVE, **values: object) -> Case:
    return Case(code, uuid, lambda content: instance(content, uuid).update(values))


def _row(code: str, subject: str, table: str, key: str, value: object, **values: object) -> Case:
    return Case(code, subject, lambda content: one(content, table, key, value).update(values))


def _added(code: str, subject: str, database: str, table: str, *added: Row) -> Case:
    return Case(code, subject, lambda content: content[database].setdefault(table, []).extend(added))


def _gone(code: str, subject: str, table: str, key: str, value: object) -> Case:
    def change(content: Rows) -> None:
        for cell in content.values():
            cell[table] = [row for row in cell.get(table, ()) if row.get(key) != value]

    return Case(code, subject, change)


def _flavor(code: str, **specs: str) -> Case:
    """``hw__x`` is hw:x."""

    def change(content: Rows) -> None:
        extra = one(content, "instance_extra", "instance_uuid", ACTIVE)
        flavor = json.loads(extra["flavor"])
        flavor["cur"]["nova_object.data"]["extra_specs"] = {k.replace("__", ":"): v for k, v in specs.items()}
        extra["flavor"] = json.dumps(flavor)

    return Case(code, ACTIVE, change)


def _system(code: str, *changes: Case, **values: str) -> Case:
    """Also with the changes of other cases before."""

    def change(content: Rows) -> None:
        for each in changes:
            each.change(content)
        listed = content["cell1"]["instance_system_metadata"]
        number = max(row["id"] for row in listed)
        for key, value in values.items():
            number += 1
            listed.append({"id": number, "instance_uuid": ACTIVE, "key": key, "value": value, "deleted": 0})

    return Case(code, ACTIVE, change)


def _compute(code: str, host: str = "cell1-host1", **values: object) -> Case:
    def change(content: Rows) -> None:
        cell = host.partition("-")[0]
        next(row for row in content[cell]["services"] if row["host"] == host).update(values)

    return Case(code, host, change)


def _both(code: str, subject: str, *changes: Callable[[Rows], object]) -> Case:
    def change(content: Rows) -> None:
        for each in changes:
            each(content)

    return Case(code, subject, change)


def _empty(host: str) -> Callable[[Rows], object]:
    """All servers of a host to the other one of its cell."""

    def change(content: Rows) -> None:
        cell = host.partition("-")[0]
        for row in content[cell]["instances"]:
            if row.get("host") == host:
                row.update(host=None, node=None, vm_state="shelved_offloaded")

    return change


_MIGRATION = {
    "id": 90, "uuid": NEW, "instance_uuid": ACTIVE, "source_compute": "cell1-host1", "dest_compute": "cell1-host2", "deleted": 0,
}  # fmt: skip
_LONG_AGO = {"last_seen_up": "2026-11-28 03:00:00"}
_COPY = {"uuid": ACTIVE, "deleted": 0, "vm_state": "active", "host": "cell2-host1", "node": "cell2-host1"}
_RESOURCES = json.dumps(
    {"nova_object.name": "ResourceList", "nova_object.version": "1.0", "nova_object.data": {"objects": [
        {"nova_object.name": "Resource", "nova_object.version": "1.0", "nova_object.data": {"resource_class": "VGPU"}}]}}
)  # fmt: skip
_PMEM = _RESOURCES.replace("VGPU", "CUSTOM_PMEM_NAMESPACE_4GB")

CASES = [
    # the deployment
    _row("service_down", "nova-scheduler on controller", "services", "binary", "nova-scheduler", **_LONG_AGO),
    _added("mapping_without_cell", "instance mappings", "api", "instance_mappings", {"id": 90, "instance_uuid": NEW}),
    _added(
        "mapping_without_server",
        "instance mappings",
        "api",
        "instance_mappings",
        {"id": 90, "instance_uuid": NEW, "cell_id": 2, "queued_for_delete": 0},
    ),
    _added("request_without_server", "build requests", "api", "build_requests", {"id": 1, "instance_uuid": NEW}),
    _row("topology_unknown", "deployment", "compute_nodes", "host", "cell1-host1", numa_topology="{"),
    # hosts
    _gone("host_unmapped", "cell1-host1", "host_mappings", "host", "cell1-host1"),
    _row("host_mapped_elsewhere", "cell1-host1", "host_mappings", "host", "cell1-host1", cell_id=3),
    _row("host_mapped_elsewhere", "cell1-host1", "host_mappings", "host", "cell1-host1", cell_id=77),
    _added(
        "host_twice",
        "cell1-host1",
        "cell2",
        "services",
        {"id": 91, "host": "cell1-host1", "binary": "nova-compute", "version": 74, "deleted": 0},
    ),
    _added("host_gone", "former", "api", "host_mappings", {"id": 91, "cell_id": 2, "host": "former"}),
    _compute("host_down", **_LONG_AGO),
    _compute("host_down", forced_down=1),
    _compute("host_down", last_seen_up=None, updated_at=None, created_at=None),
    _both(
        "empty_host_down",
        "cell1-host1",
        _empty("cell1-host1"),
        lambda content: next(r for r in content["cell1"]["services"] if r["host"] == "cell1-host1").update(_LONG_AGO),
    ),
    _gone("service_missing", "cell1-host1", "services", "host", "cell1-host1"),
    _compute("service_old", version=73),
    _compute("service_unfenced", version=64),
    _gone("node_missing", "cell1-host1", "compute_nodes", "host", "cell1-host1"),
    _added(
        "nodes_many",
        "cell1-host1",
        "cell1",
        "compute_nodes",
        {"id": 92, "host": "cell1-host1", "hypervisor_hostname": "metal", "hypervisor_type": "QEMU", "deleted": 0},
    ),
    _row("hypervisor", "cell1-host1", "compute_nodes", "host", "cell1-host1", hypervisor_type="ironic"),
    _added(
        "evacuated_from",
        "cell1-host1",
        "cell1",
        "migrations",
        {**_MIGRATION, "migration_type": "evacuation", "status": "done"},
    ),
    # servers, what they do
    _instance("task", task_state="rebooting"),
    _instance("building", vm_state="building"),
    _added("building", ACTIVE, "api", "build_requests", {"id": 1, "instance_uuid": ACTIVE}),
    _row("building", ACTIVE, "instance_mappings", "instance_uuid", ACTIVE, cell_id=None),
    _both(
        "building",
        NEW,
        lambda content: content["api"]["instance_mappings"].append({"id": 90, "instance_uuid": NEW}),
        lambda content: content["api"].setdefault("build_requests", []).append({"id": 1, "instance_uuid": NEW}),
    ),
    _instance("verify_resize", vm_state="resized"),
    _added(
        "migration_in_progress",
        ACTIVE,
        "cell1",
        "migrations",
        {**_MIGRATION, "migration_type": "live-migration", "status": "running"},
    ),
    _instance("suspended", SUSPENDED),
    _instance("rescued", RESCUED),
    _instance("state_unknown", vm_state="strange"),
    # servers, what they have
    _row("disk_encrypted", ACTIVE, "block_device_mapping", "instance_uuid", ACTIVE, encrypted=1),
    _flavor("disk_encrypted", hw__ephemeral_encryption="True"),
    _row(
        "volume_encrypted",
        DATAVOL,
        "block_device_mapping",
        "volume_id",
        VOLUME,
        connection_info=json.dumps({"driver_volume_type": "nfs", "data": {"encrypted": True}}),
    ),
    _flavor("tpm", hw__tpm_version="2.0"),
    _system("tpm", _flavor("", hw__tpm_version="2.0"), vtpm_secret_uuid=NEW, vtpm_secret_security="host"),
    _system("tpm_key", _flavor("", hw__tpm_version="2.0"), vtpm_secret_uuid=NEW),
    _flavor("vgpu", resources__VGPU="1"),
    _flavor("vgpu", resources1__VGPU="1"),
    _row("vgpu", ACTIVE, "instance_extra", "instance_uuid", ACTIVE, resources=_RESOURCES),
    _flavor("pmem", hw__pmem="4GB"),
    _row("pmem", ACTIVE, "instance_extra", "instance_uuid", ACTIVE, resources=_PMEM),
    _row("pmem", ACTIVE, "instance_extra", "instance_uuid", ACTIVE, vpmems=_PMEM),
    _added("shares", ACTIVE, "cell1", "share_mapping", {"id": 1, "instance_uuid": ACTIVE, "share_id": NEW}),
    _flavor("accelerators", accel__device_profile="fpga"),
    _flavor("memory_encrypted", hw__mem_encryption="true"),
    _system("memory_encrypted", image_hw_mem_encryption="True"),
    _row("attachment_unknown", DATAVOL, "block_device_mapping", "volume_id", VOLUME, attachment_id=None),
    # servers, what is recorded of them
    _instance("host_unknown", node="another"),
    _instance("host_unknown", host="another"),
    _gone("host_unknown", ACTIVE, "host_mappings", "host", "cell1-host1"),
    _instance("host_none", host=None, node=None),
    _instance("compute_id", compute_id=77),
    _gone("mapping_missing", ACTIVE, "instance_mappings", "instance_uuid", ACTIVE),
    _row("mapping_cell", ACTIVE, "instance_mappings", "instance_uuid", ACTIVE, cell_id=3),
    _row("mapping_cell", ACTIVE, "instance_mappings", "instance_uuid", ACTIVE, cell_id=77),
    _added(
        "mapping_cell",
        NEW,
        "api",
        "instance_mappings",
        {"id": 90, "instance_uuid": NEW, "cell_id": 77, "queued_for_delete": 0},
    ),
    _added("duplicate", ACTIVE, "cell2", "instances", {"id": 90, **_COPY}),
    _instance("hidden", hidden=1),
    _added("hidden_copy", ACTIVE, "cell2", "instances", {"id": 90, **_COPY, "hidden": 1}),
    _both(
        "hidden_copy",
        ACTIVE,
        lambda content: instance(content).update(hidden=1),
        _gone("", "", "instance_mappings", "instance_uuid", ACTIVE).change,
    ),
    _row(
        "record_unknown",
        ACTIVE,
        "instance_extra",
        "instance_uuid",
        ACTIVE,
        numa_topology='{"nova_object.name": "InstanceNUMATopology", "nova_object.version": "2.0", "nova_object.data": {}}',
    ),
    _row("record_unknown", ACTIVE, "request_specs", "instance_uuid", ACTIVE, spec="{"),
    _row(
        "not_imported", ACTIVE, "instance_extra", "instance_uuid", ACTIVE, resources=_RESOURCES.replace("VGPU", "NEW")
    ),
    _row("record_missing", ACTIVE, "instance_extra", "instance_uuid", ACTIVE, flavor=None),
    _gone("request_spec_missing", ACTIVE, "request_specs", "instance_uuid", ACTIVE),
]

__all__ = ["CASES", "NEW", "Case"]
