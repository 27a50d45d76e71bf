"""Servers of a Nova are imported, changed, moved, made and deleted here, and handed back: with the schema of any release."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec

from causeway.adopt.importing import import_cloud
from causeway.adopt.nova import NovaCloud, tables
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance, InstanceAction, InstanceFault
from causeway.model.migration import Migration
from causeway.model.numa import InstanceNUMACell, InstanceNUMATopology
from causeway.model.pci import InstancePCIRequest, PciDevice
from causeway.model.states import MigrationStatus, PowerState, VmState
from causeway.store.api import mappings, migrations
from causeway.store.cell import actions, block_devices, instances
from causeway.store.database import utcnow
from tests.unit.adopt.causeway_databases import UUIDS, OurDatabases, our_databases
from tests.unit.adopt.nova_cloud import NovaOnDisk
from tests.unit.adopt.test_hand_back import (
    ACTIVE,
    NEW,
    OTHER,
    STOPPED,
    handed_back,
    import_from,
    move_to_cell1,
    move_to_cell2,
    rows,
    server_here,
)

# With a character of four bytes: such are not in tables that Nova made in MariaDB.
NAME = "renamed \N{SNOWMAN} \N{ROCKET}"
_DEVICE = {
    "compute_node_id": 2,
    "vendor_id": "8086",
    "product_id": "1563",
    "dev_type": "type-PCI",
    "status": "available",
}


def whole(nova: NovaOnDisk, folder: Path, *, name: str = NAME) -> None:
    """``name``: what is to be in Nova's databases of `NAME`."""
    settle(nova)
    nova.add("cell1", "pci_devices", {"id": 1, "address": "0000:81:00.0", **_DEVICE})
    with our_databases(folder) as ours:
        import_and_prove(nova, ours)
        change(ours)
        move_to_cell2(ours, OTHER)
        make(ours)
        server_here(ours, "cell1", STOPPED, deleted=True, deleted_at=utcnow())
        done = handed_back(nova, ours)
        assert (done.changed, done.moved, done.made, done.deleted) == ([ACTIVE], [OTHER], [NEW], [STOPPED])
        assert handed_back(nova, ours).is_unchanged
        check_rows(nova)
        check_import(nova, ours, folder / "again", name)

        move_to_cell1(ours, OTHER)
        server_here(ours, "cell1", ACTIVE, pci_devices=[], metadata={}, locked=False, locked_by=None)
        done = handed_back(nova, ours)
        assert (done.changed, done.moved) == ([ACTIVE], [OTHER])
        assert handed_back(nova, ours).is_unchanged
        assert rows(nova, "cell1", tables.PCI_DEVICES, ACTIVE) == []


def settle(nova: NovaOnDisk) -> None:
    nova.execute("cell1", "UPDATE instances SET deleted = id WHERE vm_state = 'resized' OR task_state IS NOT NULL")


def import_and_prove(nova: NovaOnDisk, ours: OurDatabases) -> None:
    before = nova.content()
    with NovaCloud([nova.conf]) as cloud:
        first = import_cloud(cloud, ours.api, ours.cells, lambda _servers: None)
        second = import_cloud(cloud, ours.api, ours.cells, lambda _servers: None)
    assert not first.is_unchanged and second.is_unchanged
    assert (first.left_out, first.of("server").written) == ([], 14)
    assert handed_back(nova, ours).is_unchanged
    assert nova.content() == before


def change(ours: OurDatabases) -> None:
    """Of one server, all that users change, and all that a host notes."""
    cell = ours.of_cell("cell1")
    server = instances.get(cell, ACTIVE)
    larger = replace(server.flavor, flavorid="larger", name="larger \N{ROCKET}", memory_mb=4096)
    request = InstancePCIRequest(NEW, 1, [{"vendor_id": "8086", "product_id": "1563"}])
    numa = InstanceNUMACell(0, [], [0], 4096, cpu_policy="dedicated", cpu_pinning_raw={"0": 1})
    changes: dict[str, Any] = {
        "display_name": NAME,
        "display_description": NAME,
        "vm_state": VmState.STOPPED,
        "power_state": PowerState.SHUTDOWN,
        "locked": True,
        "locked_by": "owner",
        "access_ip_v4": "192.0.2.1",
        "access_ip_v6": "2001:db8::1",
        "auto_disk_config": False,
        "metadata": {"key": "value", NAME: NAME},
        "flavor": larger,
        "pci_requests": [request],
        "pci_devices": [
            PciDevice("0000:81:00.0", "8086", "1563", status="allocated", instance_uuid=ACTIVE, request_id=NEW)
        ],
        "numa_topology": InstanceNUMATopology([numa]),
        "trusted_image_certificates": ["certificate"],
    }
    server_here(ours, "cell1", ACTIVE, **changes)
    with cell.write() as connection:
        instances.replace_tags(connection, ACTIVE, ["red", NAME])
    volume = BlockDevice(
        "88888888-8888-4888-8888-888888888888", ACTIVE, "volume", "volume", volume_id=NEW, attachment_id=NEW,
        connection_info={"data": {"x": NAME}}, device_name="/dev/vdb", delete_on_termination=True,
    )  # fmt: skip
    block_devices.add(cell, volume)
    actions.start(cell, InstanceAction("stop", ACTIVE, "req-stop", start_time=utcnow(), message=NAME))
    actions.add_fault(cell, ACTIVE, InstanceFault(500, NAME * 99, "details", "cell1-host1", utcnow()))
    migration = Migration(
        "66666666-6666-4666-8666-666666666666", ACTIVE, "live-migration", MigrationStatus.COMPLETED, "cell1-host1",
        "cell1-host1", dest_compute="cell1-host2", dest_node="cell1-host2", memory_total_bytes=1 << 40,
    )  # fmt: skip
    with ours.api.write() as connection:
        mappings.set_in_spec_in(connection, ACTIVE, flavor=msgspec.to_builtins(larger))
        migrations.insert_in(connection, migration)


def make(ours: OurDatabases) -> None:
    cell = ours.of_cell("cell1")
    server: Instance = instances.get(cell, ACTIVE)
    server = replace(
        server, uuid=NEW, display_name="made here", guest_name=None, network_info=[], pci_devices=[], tags=["here"]
    )
    server.created_at = utcnow() - timedelta(hours=1)
    with cell.write() as connection:
        instances.insert(connection, server)
        disk = BlockDevice("88888888-8888-4888-8888-888888888889", NEW, "image", "local", boot_index=0)
        block_devices.insert(connection, [disk])
    spec = mappings.get_spec(ours.api, ACTIVE) | {"instance_uuid": NEW}
    mapping = mappings.InstanceMapping(NEW, server.project_id, server.user_id, server.created_at, UUIDS["cell1"])
    with ours.api.write() as connection:
        mappings.insert_in(connection, mapping)
        mappings.insert_spec_in(connection, NEW, spec)


def check_rows(nova: NovaOnDisk) -> None:
    (row,) = rows(nova, "cell1", tables.INSTANCES, ACTIVE, "uuid")
    assert (row["memory_mb"], row["vm_state"], row["locked_by"]) == (4096, "stopped", "owner")
    (device,) = rows(nova, "cell1", tables.PCI_DEVICES, ACTIVE)
    assert (device["status"], device["request_id"]) == ("allocated", NEW)
    for uuid, cell, number in ((ACTIVE, "cell1", 2), (OTHER, "cell2", 3), (NEW, "cell1", 2)):
        (mapping,) = rows(nova, "api", tables.INSTANCE_MAPPINGS, uuid)
        assert (mapping["cell_id"], bool(mapping["queued_for_delete"])) == (number, False)
        assert len(rows(nova, cell, tables.INSTANCES, uuid, "uuid")) == 1
    assert rows(nova, "cell1", tables.INSTANCES, OTHER, "uuid") == []
    assert rows(nova, "cell1", tables.INSTANCES, STOPPED, "uuid") == []
    (extra,) = rows(nova, "cell1", tables.INSTANCE_EXTRA, ACTIVE)
    (cell_of_cpus,) = json.loads(extra["numa_topology"])["nova_object.data"]["cells"]
    assert cell_of_cpus["nova_object.version"] == "1.6"


def check_import(nova: NovaOnDisk, ours: OurDatabases, folder: Path, name: str) -> None:
    """Another Causeway finds in Nova's databases what is here."""
    folder.mkdir()
    here = instances.get(ours.of_cell("cell1"), ACTIVE)
    with our_databases(folder) as again:
        import_from(nova, again)
        cell = again.of_cell("cell1")
        there = instances.get(cell, ACTIVE)
        for field in (
            "vm_state", "power_state", "locked", "locked_by", "host", "node", "access_ip_v4", "access_ip_v6", "flavor",
            "auto_disk_config", "pci_requests", "trusted_image_certificates", "config_drive",
        ):  # fmt: skip
            assert getattr(there, field) == getattr(here, field), field
        assert [(each.address, each.request_id) for each in there.pci_devices] == [("0000:81:00.0", NEW)]
        assert (there.display_name, there.display_description) == (name, name)
        assert (there.metadata, there.tags) == ({"key": "value", name: name}, sorted(["red", name]))
        assert there.numa_topology is not None and there.numa_topology.cells[0].pcpuset == [0]
        volume = next(each for each in block_devices.of_instance(cell, ACTIVE) if each.is_volume)
        assert (volume.delete_on_termination, volume.connection_info) == (True, {"data": {"x": NAME}})
        stopping = next(each for each in actions.of_instance(cell, ACTIVE) if each.action == "stop")
        assert stopping.message == name
        fault = actions.latest_faults(cell, [ACTIVE])[ACTIVE]
        assert fault.message == (name * 99)[:255]
        (moved,) = migrations.search(again.api, instance_uuid=ACTIVE)
        assert (moved.status, moved.memory_total_bytes) == (MigrationStatus.COMPLETED, 1 << 40)
        assert instances.get(again.of_cell("cell2"), OTHER).host == "cell2-host1"
        assert instances.get(cell, NEW).display_name == "made here"
