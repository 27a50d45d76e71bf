"""What was changed here is written into Nova's databases: an import from there finds it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa

from causeway.adopt.hand_back import HandBack, HandedBack, server_writes
from causeway.adopt.importing import import_cloud, server_records
from causeway.adopt.nova import NovaCloud, tables
from causeway.model.block_device import BlockDevice
from causeway.model.flavor import Flavor
from causeway.model.instance import Instance, InstanceAction
from causeway.model.migration import Migration
from causeway.model.network import FixedIp, Vif
from causeway.model.pci import PciDevice
from causeway.model.states import MigrationStatus, PowerState, TaskState, VmState
from causeway.store.api import adoptions, mappings, migrations
from causeway.store.cell import actions, block_devices, instances
from causeway.store.database import utcnow
from tests.unit.adopt.causeway_databases import UUIDS, OurDatabases, our_databases
from tests.unit.adopt.nova_cloud import NovaOnDisk, Row

ACTIVE, OTHER = "b355d05d-2774-4d5a-a0ce-bcb64458de24", "f3b65539-293f-4cca-b4a8-5a9029f73b9f"
STOPPED = "5fb84ca9-ffcf-49b3-8e92-0176af5b805b"
NEW = "77777777-7777-4777-8777-777777777777"
HOSTS = frozenset({"cell1-host1", "cell1-host2", "cell2-host1", "cell2-host2"})


@pytest.fixture
def nova(tmp_path: Path) -> NovaOnDisk:
    """Without servers that wait for something."""
    made = NovaOnDisk(tmp_path)
    made.execute("cell1", "UPDATE instances SET deleted = id WHERE vm_state = 'resized' OR task_state IS NOT NULL")
    return made


@pytest.fixture
def ours(tmp_path: Path, nova: NovaOnDisk) -> Iterator[OurDatabases]:
    with our_databases(tmp_path) as made:
        import_from(nova, made)
        yield made


def import_from(nova: NovaOnDisk, ours: OurDatabases) -> None:
    with NovaCloud([nova.conf]) as cloud:
        import_cloud(cloud, ours.api, ours.cells, lambda _servers: None)


def handed_back(nova: NovaOnDisk, ours: OurDatabases) -> HandedBack:
    with NovaCloud([nova.conf], writable=True) as cloud:
        return HandBack(cloud, ours.api, ours.cells, HOSTS).run()


def whys(nova: NovaOnDisk, ours: OurDatabases) -> list[str]:
    with NovaCloud([nova.conf]) as cloud:
        return [each.why for each in HandBack(cloud, ours.api, ours.cells, HOSTS).unsettled(HOSTS)]


def rows(nova: NovaOnDisk, cell: str, table: Any, uuid: str, key: str = "instance_uuid") -> list[Row]:
    """Those that are not deleted."""
    with NovaCloud([nova.conf]) as cloud:
        of = cloud.api if cell == "api" else next(each.database for each in cloud.cells if each.name == cell)
        return [dict(row) for row in of.rows_of(table, key, [uuid]).get(uuid, [])]


def server_here(ours: OurDatabases, cell: str, uuid: str, **changes: Any) -> None:
    instances.update(ours.of_cell(cell), uuid, **changes)


def test_what_did_not_change_is_not_written(nova: NovaOnDisk, ours: OurDatabases) -> None:
    before = nova.content()
    done = handed_back(nova, ours)
    assert (done.is_unchanged, done.unchanged) == (True, 11)
    assert nova.content() == before


def test_an_import_of_what_was_handed_back_is_what_was_here(
    nova: NovaOnDisk, ours: OurDatabases, tmp_path: Path
) -> None:
    """Everything that users change of a server."""
    cell = ours.of_cell("cell1")
    server = instances.get(cell, ACTIVE)
    vif = Vif(
        "99999999-9999-4999-8999-999999999999",
        "fa:16:3e:00:00:01",
        "net",
        "net",
        [FixedIp("10.0.0.9", "sub", 4, "10.0.0.0/24")],
        vif_type="ovs",
        tag="second",
        details={"bridge_name": "br-int"},
    )
    server_here(
        ours,
        "cell1",
        ACTIVE,
        display_name="renamed",
        vm_state=VmState.STOPPED,
        power_state=PowerState.SHUTDOWN,
        locked=True,
        locked_by="owner",
        host="cell1-host2",
        node="cell1-host2",
        metadata={"new": "value"},
        flavor=_larger(server.flavor),
        network_info=[*server.network_info, vif],
        system_metadata={**server.system_metadata, "mine": "1"},
    )
    with cell.write() as connection:
        instances.replace_tags(connection, ACTIVE, ["red"])
    block_devices.add(
        cell,
        BlockDevice(
            "88888888-8888-4888-8888-888888888888",
            ACTIVE,
            "volume",
            "volume",
            volume_id=NEW,
            attachment_id=NEW,
            connection_info={"data": {"x": 1}},
            device_name="/dev/vdb",
        ),
    )
    actions.start(cell, InstanceAction("stop", ACTIVE, "req-stop", start_time=utcnow()))
    with ours.api.write() as connection:
        mappings.set_in_spec_in(connection, ACTIVE, flavor=msgspec.to_builtins(_larger(server.flavor)))
        migrations.insert_in(
            connection,
            Migration(
                "66666666-6666-4666-8666-666666666666",
                ACTIVE,
                "resize",
                MigrationStatus.CONFIRMED,
                "cell1-host1",
                "cell1-host1",
                dest_compute="cell1-host2",
                dest_node="cell1-host2",
            ),
        )
    here = instances.get(cell, ACTIVE)
    assert handed_back(nova, ours).changed == [ACTIVE]
    assert handed_back(nova, ours).is_unchanged
    (tmp_path / "again").mkdir()
    with our_databases(tmp_path / "again") as again:
        import_from(nova, again)
        there = instances.get(again.of_cell("cell1"), ACTIVE)
        assert there.guest_name == here.guest_name == "instance-00000001"
        for name in ("display_name", "vm_state", "power_state", "locked", "host", "node", "metadata", "tags", "flavor"):
            assert getattr(there, name) == getattr(here, name), name
        assert there.system_metadata["mine"] == "1"
        assert [(each.id, each.tag) for each in there.network_info] == [
            (each.id, each.tag) for each in here.network_info
        ]
        assert there.network_info[1].fixed_ips[0].address == "10.0.0.9"
        devices = block_devices.of_instance(again.of_cell("cell1"), ACTIVE)
        assert [(each.volume_id, each.connection_info) for each in devices][1:] == [(NEW, {"data": {"x": 1}})]
        assert {each.action for each in actions.of_instance(again.of_cell("cell1"), ACTIVE)} == {"create", "stop"}
        assert [each.status for each in migrations.search(again.api, instance_uuid=ACTIVE)] == [
            MigrationStatus.CONFIRMED
        ]
        assert mappings.get_spec(again.api, ACTIVE)["flavor"]["flavorid"] == "larger"
    (row,) = rows(nova, "cell1", tables.INSTANCES, ACTIVE, "uuid")
    assert (row["compute_id"], row["memory_mb"], row["vm_state"], row["task_state"]) == (1, 4096, "stopped", None)


def _larger(flavor: Flavor) -> Flavor:
    return replace(flavor, flavorid="larger", name="larger", memory_mb=4096)


def move_to_cell2(ours: OurDatabases, uuid: str) -> None:
    _move(ours, uuid, "cell1", "cell2", "cell2-host1")


def move_to_cell1(ours: OurDatabases, uuid: str) -> None:
    _move(ours, uuid, "cell2", "cell1", "cell1-host2")


def _move(ours: OurDatabases, uuid: str, from_cell: str, to_cell: str, host: str) -> None:
    source, target = ours.of_cell(from_cell), ours.of_cell(to_cell)
    server = instances.get(source, uuid)
    server.host = server.node = host
    devices = block_devices.of_instance(source, uuid)
    with source.read() as connection:
        history = actions.history(connection, uuid)
    server_records.delete_from_cell(source, [uuid])
    with target.write() as connection:
        instances.insert(connection, server)
        block_devices.insert(connection, devices)
        actions.insert_history(connection, history)
    with ours.api.write() as connection:
        mappings.set_cell_in(connection, uuid, UUIDS[to_cell], expected=UUIDS[from_cell])


def test_a_server_that_moved_to_another_cell_lives_there_for_nova_too(nova: NovaOnDisk, ours: OurDatabases) -> None:
    move_to_cell2(ours, OTHER)
    assert handed_back(nova, ours).moved == [OTHER]
    (row,) = rows(nova, "cell2", tables.INSTANCES, OTHER, "uuid")
    assert (row["host"], row["node"]) == ("cell2-host1", "cell2-host1")
    assert row["compute_id"] == next(r["id"] for r in rows(nova, "cell2", tables.COMPUTE_NODES, "cell2-host1", "host"))
    assert rows(nova, "cell1", tables.INSTANCES, OTHER, "uuid") == []
    assert rows(nova, "cell1", tables.BLOCK_DEVICE_MAPPING, OTHER) == []
    assert [bool(each["volume_id"]) for each in rows(nova, "cell2", tables.BLOCK_DEVICE_MAPPING, OTHER)] == [
        False,
        True,
    ]
    (mapping,) = rows(nova, "api", tables.INSTANCE_MAPPINGS, OTHER)
    assert mapping["cell_id"] == 3
    assert handed_back(nova, ours).is_unchanged


def test_a_server_that_moved_back_again_lives_in_its_first_cell(nova: NovaOnDisk, ours: OurDatabases) -> None:
    move_to_cell2(ours, OTHER)
    handed_back(nova, ours)
    move_to_cell1(ours, OTHER)
    assert handed_back(nova, ours).moved == [OTHER]
    (row,) = rows(nova, "cell1", tables.INSTANCES, OTHER, "uuid")
    assert (row["id"], row["host"]) == (2, "cell1-host2")
    assert len(rows(nova, "cell1", tables.BLOCK_DEVICE_MAPPING, OTHER)) == 2
    assert rows(nova, "cell2", tables.INSTANCES, OTHER, "uuid") == []


def test_a_move_that_was_half_handed_back_is_completed(
    nova: NovaOnDisk, ours: OurDatabases, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process dies when Nova knows the new cell, and the rows of the old one are still there."""

    def dies(*_given: object) -> None:
        raise KeyboardInterrupt

    move_to_cell2(ours, OTHER)
    with monkeypatch.context() as patch:
        patch.setattr(server_writes, "mark_deleted", dies)
        with pytest.raises(KeyboardInterrupt):
            handed_back(nova, ours)
    assert rows(nova, "cell1", tables.INSTANCES, OTHER, "uuid")
    handed_back(nova, ours)
    assert rows(nova, "cell1", tables.INSTANCES, OTHER, "uuid") == []
    assert len(rows(nova, "cell2", tables.INSTANCES, OTHER, "uuid")) == 1


def test_a_server_that_was_deleted_here_is_deleted_in_nova(nova: NovaOnDisk, ours: OurDatabases) -> None:
    server_here(ours, "cell1", ACTIVE, deleted=True, deleted_at=utcnow())
    assert handed_back(nova, ours).deleted == [ACTIVE]
    assert rows(nova, "cell1", tables.INSTANCES, ACTIVE, "uuid") == []
    with NovaCloud([nova.conf]) as cloud:
        (row,) = [row for row in cloud.cells[1].database.rows(tables.INSTANCES) if row["uuid"] == ACTIVE]
    assert (row["deleted"], row["vm_state"]) == (row["id"], "deleted")
    (mapping,) = rows(nova, "api", tables.INSTANCE_MAPPINGS, ACTIVE)
    assert mapping["queued_for_delete"] == 1
    assert handed_back(nova, ours).is_unchanged


def test_a_server_that_no_record_here_knows_is_not_deleted_in_nova(nova: NovaOnDisk, ours: OurDatabases) -> None:
    with ours.api.write() as connection:
        server_records.delete(connection, ours.of_cell("cell1"), [ACTIVE])
    assert handed_back(nova, ours).is_unchanged
    assert rows(nova, "cell1", tables.INSTANCES, ACTIVE, "uuid")
    assert whys(nova, ours) == ["Nova has it on a host that is Causeway's, and no record here knows it"]


def make_here(ours: OurDatabases) -> Instance:
    """A server like another one, that Nova does not know."""
    cell = ours.of_cell("cell1")
    server = instances.get(cell, ACTIVE)
    server.uuid, server.display_name, server.guest_name, server.tags = NEW, "made here", None, ["here"]
    server.network_info = []
    server.created_at = utcnow() - timedelta(hours=1)
    with cell.write() as connection:
        instances.insert(connection, server)
        block_devices.insert(
            connection, [BlockDevice("88888888-8888-4888-8888-888888888888", NEW, "image", "local", boot_index=0)]
        )
    spec = mappings.get_spec(ours.api, ACTIVE) | {"instance_uuid": NEW}
    with ours.api.write() as connection:
        mappings.insert_in(
            connection,
            mappings.InstanceMapping(NEW, server.project_id, server.user_id, server.created_at, UUIDS["cell1"]),
        )
        mappings.insert_spec_in(connection, NEW, spec)
    return server


def test_a_server_that_was_made_here_is_made_in_nova(nova: NovaOnDisk, ours: OurDatabases) -> None:
    server = make_here(ours)
    assert handed_back(nova, ours).made == [NEW]
    (row,) = rows(nova, "cell1", tables.INSTANCES, NEW, "uuid")
    assert (row["display_name"], row["host"], row["config_drive"]) == ("made here", "cell1-host1", "True")
    (extra,) = rows(nova, "cell1", tables.INSTANCE_EXTRA, NEW)
    flavor = json.loads(extra["flavor"])["cur"]
    assert (flavor["nova_object.version"], flavor["nova_object.data"]["flavorid"]) == ("1.2", "gen1.small")
    (stored,) = rows(nova, "api", tables.REQUEST_SPECS, NEW)
    request = json.loads(stored["spec"])
    assert (request["nova_object.name"], request["nova_object.version"]) == ("RequestSpec", "1.15")
    assert request["nova_object.data"]["image"]["nova_object.data"]["id"] == server.image_ref
    # Later imports know it.
    import_from(nova, ours)
    assert handed_back(nova, ours).is_unchanged


def test_a_port_of_another_server_is_the_new_ones_in_nova_whichever_is_written_first(
    nova: NovaOnDisk, ours: OurDatabases
) -> None:
    vif, *others = instances.get(ours.of_cell("cell1"), OTHER).network_info
    server_here(ours, "cell1", OTHER, network_info=others)
    server_here(ours, "cell1", ACTIVE, network_info=[vif])
    assert sorted(handed_back(nova, ours).changed) == [ACTIVE, OTHER]
    assert [row["uuid"] for row in rows(nova, "cell1", tables.VIRTUAL_INTERFACES, ACTIVE)] == [vif.id]
    assert vif.id not in [row["uuid"] for row in rows(nova, "cell1", tables.VIRTUAL_INTERFACES, OTHER)]
    assert handed_back(nova, ours).is_unchanged


def test_properties_of_images_that_are_too_long_are_cut_as_nova_cuts_them(nova: NovaOnDisk, ours: OurDatabases) -> None:
    server = instances.get(ours.of_cell("cell1"), ACTIVE)
    changed = {**server.system_metadata, "image_long": "x" * 999, "image_" + "y" * 255: "1"}
    server_here(ours, "cell1", ACTIVE, system_metadata=changed)
    handed_back(nova, ours)
    found = {row["key"]: row["value"] for row in rows(nova, "cell1", tables.INSTANCE_SYSTEM_METADATA, ACTIVE)}
    assert found["image_long"] == "x" * 255
    assert max(map(len, found)) <= 255
    assert handed_back(nova, ours).is_unchanged


def test_imports_know_a_server_that_was_made_here_though_the_hand_back_died(
    nova: NovaOnDisk, ours: OurDatabases, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It died when Nova had the server already."""

    def dies(*_given: object) -> None:
        raise KeyboardInterrupt

    make_here(ours)
    with monkeypatch.context() as patch:
        patch.setattr(adoptions, "save_in", dies)
        with pytest.raises(KeyboardInterrupt):
            handed_back(nova, ours)
    assert rows(nova, "cell1", tables.INSTANCES, NEW, "uuid")
    handed_back(nova, ours)
    nova.execute("cell1", f"UPDATE instances SET display_name = 'by nova' WHERE uuid = '{NEW}'")
    import_from(nova, ours)
    assert instances.get(ours.of_cell("cell1"), NEW).display_name == "by nova"


def test_a_device_that_a_server_has_here_is_its_in_nova(nova: NovaOnDisk, ours: OurDatabases) -> None:
    free = {
        "compute_node_id": 2,
        "vendor_id": "8086",
        "product_id": "1563",
        "dev_type": "type-PCI",
        "status": "available",
    }
    nova.add(
        "cell1",
        "pci_devices",
        {"id": 1, "address": "0000:81:00.0", **free},
        {"id": 2, "address": "0000:81:00.1", **free},
    )
    device = PciDevice("0000:81:00.1", "8086", "1563", status="allocated", instance_uuid=ACTIVE, request_id=NEW)
    server_here(ours, "cell1", ACTIVE, pci_devices=[device])
    assert handed_back(nova, ours).changed == [ACTIVE]
    (row,) = rows(nova, "cell1", tables.PCI_DEVICES, ACTIVE)
    assert (row["address"], row["status"], row["request_id"]) == ("0000:81:00.1", "allocated", NEW)
    server_here(ours, "cell1", ACTIVE, pci_devices=[])
    handed_back(nova, ours)
    assert rows(nova, "cell1", tables.PCI_DEVICES, ACTIVE) == []


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"task_state": TaskState.REBOOTING}, "its task rebooting is running"),
        ({"vm_state": VmState.RESIZED}, "its resize waits for confirm or revert"),
        ({"vm_state": VmState.SUSPENDED}, "its memory is not where Nova would look for it"),
        ({"vm_state": VmState.RESCUED, "system_metadata": {"rescued_at": "2026-11-30"}}, "unrescue it"),
    ],
)
def test_what_nova_could_not_continue_with_is_named(
    nova: NovaOnDisk, ours: OurDatabases, changes: dict[str, Any], why: str
) -> None:
    assert whys(nova, ours) == []
    server_here(ours, "cell1", ACTIVE, **changes)
    (found,) = whys(nova, ours)
    assert why in found


def test_an_older_release_gets_no_column_that_it_lacks(tmp_path: Path) -> None:
    older = NovaOnDisk(tmp_path, release=24)
    with our_databases(tmp_path) as ours:
        import_from(older, ours)
        server_here(ours, "cell1", STOPPED, display_name="renamed")
        assert handed_back(older, ours).changed == [STOPPED]
    assert rows(older, "cell1", tables.INSTANCES, STOPPED, "uuid")[0]["display_name"] == "renamed"


def test_rows_that_nova_marks_as_deleted_have_times() -> None:
    lasting = [each for each in vars(tables).values() if isinstance(each, sa.TableClause) and "deleted" in each.c]
    assert lasting
    for table in lasting:
        assert {"created_at", "updated_at", "deleted_at"} <= set(table.c.keys()), table.name


def test_a_server_that_nova_had_shelved_and_that_was_unshelved_and_deleted_here_is_deleted_in_nova(
    nova: NovaOnDisk, ours: OurDatabases
) -> None:
    uuid, cell = shelve_in_nova(nova, ours)
    server_here(ours, cell, uuid, host="cell1-host1", vm_state=VmState.ACTIVE)
    server_here(ours, cell, uuid, deleted=True, deleted_at=utcnow())
    assert handed_back(nova, ours).deleted == [uuid]
    assert rows(nova, cell, tables.INSTANCES, uuid, "uuid") == []
    assert handed_back(nova, ours).is_unchanged


def test_a_server_that_is_shelved_in_nova_and_here_has_the_image_that_was_made_last(
    nova: NovaOnDisk, ours: OurDatabases
) -> None:
    """It was unshelved on a host that is ours, which deletes the image that Nova made, and shelved again."""
    uuid, cell = shelve_in_nova(nova, ours)
    system = instances.get(ours.of_cell(cell), uuid).system_metadata
    server_here(ours, cell, uuid, system_metadata={**system, "shelved_image_id": "made here"})
    assert handed_back(nova, ours).changed == [uuid]
    found = {row["key"]: row["value"] for row in rows(nova, cell, tables.INSTANCE_SYSTEM_METADATA, uuid)}
    assert found["shelved_image_id"] == "made here"
    assert handed_back(nova, ours).is_unchanged


@pytest.mark.parametrize("host", [None, "cell9-host9"], ids=["shelved", "unshelved"])
def test_a_server_without_a_host_that_nova_has_changed_since_its_import_stays_as_nova_has_it(
    nova: NovaOnDisk, ours: OurDatabases, host: str | None
) -> None:
    """Until the finish it is Nova's."""
    uuid, cell = shelve_in_nova(nova, ours)
    server_here(ours, cell, uuid, display_name="changed here")
    later = utcnow() + timedelta(minutes=1)
    nova.execute(
        cell,
        f"UPDATE instances SET display_name = 'changed in nova', updated_at = '{later}', "
        f"host = {'NULL' if host is None else repr(host)} WHERE uuid = '{uuid}'",
    )
    assert handed_back(nova, ours).is_unchanged
    assert [row["display_name"] for row in rows(nova, cell, tables.INSTANCES, uuid, "uuid")] == ["changed in nova"]
    assert whys(nova, ours) == []


def test_a_server_that_was_made_and_shelved_here_is_made_in_nova(nova: NovaOnDisk, ours: OurDatabases) -> None:
    make_here(ours)
    server_here(ours, "cell1", NEW, host=None, node=None, vm_state=VmState.SHELVED_OFFLOADED)
    assert handed_back(nova, ours).made == [NEW]
    assert handed_back(nova, ours).is_unchanged


def shelve_in_nova(nova: NovaOnDisk, ours: OurDatabases) -> tuple[str, str]:
    """A server that Nova shelved before it was imported, and its cell."""
    nova.execute(
        "cell1", f"UPDATE instances SET vm_state = 'shelved_offloaded', host = NULL, node = NULL WHERE uuid = '{OTHER}'"
    )
    import_from(nova, ours)
    assert instances.get(ours.of_cell("cell1"), OTHER).host is None
    return OTHER, "cell1"
