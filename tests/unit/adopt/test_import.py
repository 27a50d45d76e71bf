"""An import copies what Nova has; a second one proves that; what can't be taken over is named."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from causeway import errors
from causeway.adopt.importing import ImportReport, import_cloud, server_records
from causeway.adopt.importing.servers import Network
from causeway.adopt.nova import NovaCloud
from causeway.model import rescue
from causeway.model.adoption import AdoptedHost, HostState
from causeway.model.soft_deleted import SINCE
from causeway.model.states import PowerState, VmState
from causeway.store.api import adopted_hosts, aggregates, flavors, groups, keypairs, mappings, migrations, quotas
from causeway.store.cell import actions, block_devices, hosts, instances
from tests.unit.adopt.causeway_databases import UUIDS, OurDatabases, our_databases
from tests.unit.adopt.nova_cloud import ROWS, NovaOnDisk
from tests.unit.adopt.test_hand_back import move_to_cell2

ACTIVE = "b355d05d-2774-4d5a-a0ce-bcb64458de24"
DATAVOL = "f3b65539-293f-4cca-b4a8-5a9029f73b9f"
NOT_SETTLED = {
    "94e07eb8-2487-4867-b14e-4ec439d2193b": "its resize waits for confirm or revert",
    "1e2282a3-f2e0-42c2-af16-40a51c5b74b3": "its task resize_migrated runs in Nova",
}


def by_name(name: str) -> str:
    return next(
        row["uuid"]
        for cell in ("cell0", "cell1", "cell2")
        for row in ROWS[cell]["instances"]
        if row["display_name"] == name
    )


@pytest.fixture
def nova(tmp_path: Path) -> NovaOnDisk:
    return NovaOnDisk(tmp_path)


@pytest.fixture
def ours(tmp_path: Path) -> Iterator[OurDatabases]:
    with our_databases(tmp_path) as made:
        yield made


def imported(
    nova: NovaOnDisk, ours: OurDatabases, network: Network = lambda _servers: None, **options: object
) -> ImportReport:
    with NovaCloud([nova.conf]) as cloud:
        return import_cloud(cloud, ours.api, ours.cells, network, **options)  # type: ignore[arg-type]


def test_every_settled_server_is_imported_and_the_others_are_named(nova: NovaOnDisk, ours: OurDatabases) -> None:
    before = nova.content()
    report = imported(nova, ours)
    rows = {row["uuid"] for name in UUIDS for row in ROWS[name].get("instances", [])}
    left_out = {each.key: each.why for each in report.left_out}
    assert set(NOT_SETTLED) <= set(left_out)
    for uuid, why in NOT_SETTLED.items():
        assert why in left_out[uuid]
    there = {each.uuid for name in UUIDS for each in instances.select(ours.of_cell(name), instances.SELECT)}
    assert there == rows - set(left_out)
    assert report.of("server").written == len(there)
    assert nova.content() == before


def test_a_second_import_finds_no_difference(nova: NovaOnDisk, ours: OurDatabases) -> None:
    first, second = imported(nova, ours), imported(nova, ours)
    assert not first.is_unchanged
    assert second.is_unchanged
    assert {kind: counts.digest for kind, counts in second.by_kind.items()} == {
        kind: counts.digest for kind, counts in first.by_kind.items()
    }


def test_a_server_is_imported_with_everything_that_it_has(nova: NovaOnDisk, ours: OurDatabases) -> None:
    imported(nova, ours)
    server = instances.get(ours.of_cell("cell1"), ACTIVE)
    assert (server.display_name, server.vm_state, server.power_state) == ("active", VmState.ACTIVE, PowerState.RUNNING)
    assert (server.host, server.node, server.guest_name) == ("cell1-host1", "cell1-host1", "instance-00000001")
    assert (server.metadata, server.tags, server.config_drive) == ({"owner": "ops"}, ["blue", "prod"], True)
    assert server.image_meta is not None
    assert server.image_meta.properties["hw_machine_type"] == server.system_metadata["image_hw_machine_type"] == "pc"
    assert (server.image_meta.min_disk, server.image_meta.size) == (1, 14419456)
    assert [key.name for key in server.keypairs] == ["key"]
    (vif,) = server.network_info
    assert (vif.address, vif.vif_type, [ip.address for ip in vif.fixed_ips]) == (
        "fa:16:3e:40:fa:81",
        "ovs",
        ["10.0.0.225"],
    )
    assert server.flavor.extra_specs == {"aggregate_instance_extra_specs:gen": "1"}
    (row,) = [each for each in ROWS["cell1"]["instance_actions"] if each["instance_uuid"] == ACTIVE]
    action = actions.get(ours.of_cell("cell1"), ACTIVE, row["request_id"])
    assert action is not None
    assert (action.action, [(event.event, event.result) for event in action.events]) == (
        "create",
        [("compute__do_build_and_run_instance", "Success")],
    )
    mapping = mappings.get(ours.api, ACTIVE)
    assert (mapping.cell_uuid, mapping.deleted, mapping.created_at) == (UUIDS["cell1"], False, server.created_at)
    assert mappings.get_spec(ours.api, ACTIVE)["flavor"]["flavorid"] == server.flavor.flavorid


def test_a_volume_is_attached_as_it_was(nova: NovaOnDisk, ours: OurDatabases) -> None:
    imported(nova, ours)
    volume = next(each for each in block_devices.of_instance(ours.of_cell("cell1"), DATAVOL) if each.is_volume)
    row = next(each for each in ROWS["cell1"]["block_device_mapping"] if each.get("volume_id"))
    assert (volume.uuid, volume.attachment_id, volume.volume_id) == (
        row["uuid"],
        row["attachment_id"],
        row["volume_id"],
    )
    assert volume.connection_info is not None
    assert volume.connection_info["data"]["device_path"].startswith("/var/lib/nova/mnt/")


def test_what_nova_keeps_elsewhere_or_not_at_all_is_added(nova: NovaOnDisk, ours: OurDatabases) -> None:
    imported(nova, ours)
    cell = ours.of_cell("cell2")
    rescued, deleted = instances.get(cell, by_name("rescued")), instances.get(cell, by_name("softdel"))
    assert rescued.system_metadata[rescue.IMAGE] == rescued.image_ref
    row = next(each for each in ROWS["cell2"]["instances"] if each["uuid"] == deleted.uuid)
    assert deleted.system_metadata[SINCE].replace("T", " ") == row.get("deleted_at", row["updated_at"])


def test_the_rest_of_the_api_database_is_imported_under_its_numbers(nova: NovaOnDisk, ours: OurDatabases) -> None:
    imported(nova, ours)
    rows = ROWS["api"]
    assert {(each.id, each.flavorid) for each in flavors.list_all(ours.api)} == {
        (r["id"], r["flavorid"]) for r in rows["flavors"]
    }
    (key,) = rows["key_pairs"]
    assert keypairs.get(ours.api, key["user_id"], key["name"]).fingerprint == key["fingerprint"]
    assert {each.uuid: each.hosts for each in aggregates.list_all(ours.api)} == {
        row["uuid"]: sorted(h["host"] for h in rows["aggregate_hosts"] if h["aggregate_id"] == row["id"])
        for row in rows["aggregates"]
    }
    group = rows["instance_groups"][1]
    assert groups.get(ours.api, group["uuid"]).policy == "soft-anti-affinity"
    project = rows["quotas"][0]["project_id"]
    assert quotas.limits(ours.api, project) == {"cores": -1, "instances": -1, "ram": -1}


def test_a_disabled_compute_of_nova_is_disabled_here_under_its_uuid(nova: NovaOnDisk, ours: OurDatabases) -> None:
    nova.execute("cell1", "UPDATE services SET disabled = 1, disabled_reason = 'broken fan' WHERE host = 'cell1-host1'")
    imported(nova, ours)
    (service,) = hosts.list_services(ours.of_cell("cell1"), host="cell1-host1")
    row = next(each for each in ROWS["cell1"]["services"] if each["host"] == "cell1-host1")
    assert (service.uuid, service.disabled, service.disabled_reason) == (row["uuid"], True, "broken fan")
    assert service.last_seen_up is None


def test_migrations_of_both_cells_are_one(nova: NovaOnDisk, ours: OurDatabases) -> None:
    uuid = by_name("mover-6770")
    nova.execute("cell1", f"UPDATE instances SET task_state = NULL WHERE uuid = '{uuid}'")
    for cell in ("cell1", "cell2"):
        nova.execute(cell, "UPDATE migrations SET status = 'error' WHERE status LIKE '%-migrating'")
    imported(nova, ours)
    rows = [row for cell in ("cell1", "cell2") for row in ROWS[cell]["migrations"] if row["instance_uuid"] == uuid]
    found = migrations.search(ours.api, instance_uuid=uuid)
    assert len(rows) == 10
    assert {each.uuid for each in found} == {row["uuid"] for row in rows}
    assert [each.cross_cell_move for each in sorted(found, key=lambda each: each.id)].count(True) == 2


def test_only_what_has_changed_is_written_again(nova: NovaOnDisk, ours: OurDatabases) -> None:
    imported(nova, ours)
    nova.execute("cell1", f"UPDATE instances SET display_name = 'renamed' WHERE uuid = '{ACTIVE}'")
    nova.execute("api", "UPDATE flavors SET description = 'small' WHERE id = 1")
    report = imported(nova, ours)
    assert {kind: counts.written for kind, counts in report.by_kind.items() if counts.written} == {
        "flavor": 1,
        "server": 1,
    }
    assert instances.get(ours.of_cell("cell1"), ACTIVE).display_name == "renamed"
    assert len(actions.of_instance(ours.of_cell("cell1"), ACTIVE)) == 1
    assert imported(nova, ours).is_unchanged


def test_what_nova_has_deleted_since_is_deleted(nova: NovaOnDisk, ours: OurDatabases) -> None:
    imported(nova, ours)
    nova.execute("cell1", f"UPDATE instances SET deleted = id WHERE uuid = '{ACTIVE}'")
    nova.execute("api", "DELETE FROM key_pairs")
    nova.execute("api", "DELETE FROM flavors WHERE id = 6")
    report = imported(nova, ours)
    assert {kind: counts.deleted for kind, counts in report.by_kind.items() if counts.deleted} == {
        "flavor": 1,
        "key pair": 1,
        "server": 1,
    }
    with pytest.raises(errors.ServerNotFound):
        mappings.get(ours.api, ACTIVE)
    assert instances.find(ours.of_cell("cell1"), ACTIVE, deleted=True) is None
    assert imported(nova, ours).is_unchanged


def test_a_server_that_nova_moved_to_another_cell_is_moved_here(nova: NovaOnDisk, ours: OurDatabases) -> None:
    imported(nova, ours)
    with NovaCloud([nova.conf]) as cloud:
        numbers = {cell.name: cell.row_id for cell in cloud.cells}
    tables = ("instances", "instance_extra", "instance_system_metadata", "instance_actions")
    for table in tables:
        key = "uuid" if table == "instances" else "instance_uuid"
        rows = [row for row in ROWS["cell1"][table] if row[key] == ACTIVE]
        nova.add("cell2", table, *({**row, "id": 900 + number} for number, row in enumerate(rows)))
        nova.execute("cell1", f"UPDATE {table} SET deleted = 1 WHERE {key} = '{ACTIVE}'")
    nova.execute("api", f"UPDATE instance_mappings SET cell_id = {numbers['cell2']} WHERE instance_uuid = '{ACTIVE}'")
    imported(nova, ours)
    assert mappings.get(ours.api, ACTIVE).cell_uuid == UUIDS["cell2"]
    assert instances.find(ours.of_cell("cell1"), ACTIVE, deleted=True) is None
    assert instances.get(ours.of_cell("cell2"), ACTIVE).guest_name == "instance-00000384"
    assert imported(nova, ours).is_unchanged


def test_servers_of_hosts_that_are_ours_are_not_touched(nova: NovaOnDisk, ours: OurDatabases) -> None:
    imported(nova, ours)
    nova.execute("cell1", f"UPDATE instances SET display_name = 'stale' WHERE uuid = '{ACTIVE}'")
    nova.execute("cell1", "UPDATE instances SET deleted = id WHERE uuid = '5fb84ca9-ffcf-49b3-8e92-0176af5b805b'")
    report = imported(nova, ours, owned={"cell1-host1"})
    assert instances.get(ours.of_cell("cell1"), ACTIVE).display_name == "active"
    assert instances.find(ours.of_cell("cell1"), "5fb84ca9-ffcf-49b3-8e92-0176af5b805b") is not None
    assert report.of("server").written == report.of("server").deleted == 0
    assert report.ours > 0


def test_servers_of_hosts_that_are_taken_during_an_import_are_not_touched(nova: NovaOnDisk, ours: OurDatabases) -> None:
    """Neutron is asked for their ports, which may take long, between reading Nova's records and writing ours."""
    imported(nova, ours)
    gone = "5fb84ca9-ffcf-49b3-8e92-0176af5b805b"
    nova.execute("cell1", f"UPDATE instances SET display_name = 'stale' WHERE uuid IN ('{ACTIVE}', '{DATAVOL}')")
    nova.execute("cell1", f"UPDATE instances SET deleted = id WHERE uuid = '{gone}'")
    host = AdoptedHost("cell1-host1", UUIDS["cell1"], HostState.TAKING)
    report = imported(nova, ours, network=lambda _servers: adopted_hosts.save(ours.api, host))
    cell = ours.of_cell("cell1")
    lives_on = {uuid: instances.get(cell, uuid).host for uuid in (ACTIVE, DATAVOL)}
    assert lives_on[ACTIVE] == "cell1-host1" != lives_on[DATAVOL]
    assert [instances.get(cell, uuid).display_name for uuid in (ACTIVE, DATAVOL)] == ["active", "stale"]
    assert instances.find(cell, gone) is not None
    assert (report.of("server").written, report.of("server").deleted) == (1, 0)


def test_a_host_is_not_taken_while_its_servers_are_written(
    nova: NovaOnDisk, ours: OurDatabases, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else its service could have changed what the import then writes over."""
    imported(nova, ours)
    nova.execute("cell1", f"UPDATE instances SET display_name = 'stale' WHERE uuid = '{ACTIVE}'")
    host, write = AdoptedHost("cell1-host1", UUIDS["cell1"], HostState.TAKING), server_records.write
    taken: list[Future[None]] = []

    def written_slowly(*given: Any) -> None:
        taking = taker.submit(adopted_hosts.save, ours.api, host)
        taken.append(taking)
        with pytest.raises(TimeoutError):
            taking.result(timeout=0.5)
        write(*given)

    with ThreadPoolExecutor(1) as taker, monkeypatch.context() as patch:
        patch.setattr(server_records, "write", written_slowly)
        imported(nova, ours)
        taken[0].result(timeout=30)
    assert instances.get(ours.of_cell("cell1"), ACTIVE).display_name == "stale"
    assert adopted_hosts.owned(ours.api) == {"cell1-host1"}


def test_a_server_that_moved_here_to_another_cell_outlives_its_record_in_nova(
    nova: NovaOnDisk, ours: OurDatabases
) -> None:
    """Users of Nova's API can delete what Nova shows on a host that it has no longer."""
    imported(nova, ours)
    move_to_cell2(ours, ACTIVE)
    nova.execute("cell1", f"UPDATE instances SET deleted = id WHERE uuid = '{ACTIVE}'")
    report = imported(nova, ours, owned={"cell1-host1", "cell2-host1"})
    assert report.of("server").deleted == 0
    assert mappings.get(ours.api, ACTIVE).cell_uuid == UUIDS["cell2"]
    assert instances.find(ours.of_cell("cell2"), ACTIVE) is not None


def test_a_server_that_waits_in_another_cell_keeps_the_record_that_it_has(nova: NovaOnDisk, ours: OurDatabases) -> None:
    """It is left out until it is settled there, and what was imported of it before stays."""
    imported(nova, ours)
    for table in ("instances", "instance_extra"):
        key = "uuid" if table == "instances" else "instance_uuid"
        rows = [{**row, "id": 900} for row in ROWS["cell1"][table] if row[key] == ACTIVE]
        nova.add("cell2", table, *({**row, "task_state": "rebooting"} if table == "instances" else row for row in rows))
    nova.execute("cell1", f"UPDATE instances SET deleted = id WHERE uuid = '{ACTIVE}'")
    nova.execute("api", f"UPDATE instance_mappings SET cell_id = 3 WHERE instance_uuid = '{ACTIVE}'")
    report = imported(nova, ours)
    assert ACTIVE in {each.key for each in report.left_out}
    assert report.of("server").deleted == 0
    assert mappings.get(ours.api, ACTIVE).cell_uuid == UUIDS["cell1"]


def test_what_was_made_here_under_the_same_name_stays_and_is_named(nova: NovaOnDisk, ours: OurDatabases) -> None:
    mine = flavors.create(ours.api, flavors.MAPPER.model("mine", ROWS["api"]["flavors"][0]["name"], 1, 1, 1))
    report = imported(nova, ours)
    (left_out,) = [each for each in report.left_out if each.kind == "flavor"]
    assert left_out.key == ROWS["api"]["flavors"][0]["flavorid"]
    assert flavors.get(ours.api, "mine") == mine
    assert report.of("flavor").written == len(ROWS["api"]["flavors"]) - 1


def test_an_import_that_died_between_the_databases_is_repeated(
    nova: NovaOnDisk, ours: OurDatabases, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(*_given: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(server_records, "_insert_in_api", dies)
        with pytest.raises(KeyboardInterrupt):
            imported(nova, ours)
    with pytest.raises(errors.ServerNotFound):
        mappings.get(ours.api, by_name("nohost"))
    imported(nova, ours)
    assert mappings.get(ours.api, by_name("nohost")).cell_uuid == UUIDS["cell0"]
    assert imported(nova, ours).is_unchanged


def test_a_record_of_an_unknown_form_leaves_out_its_server_only(nova: NovaOnDisk, ours: OurDatabases) -> None:
    nova.execute(
        "cell1",
        'UPDATE instance_extra SET flavor = replace(flavor, \'"nova_object.version": "1.2"\', \'"nova_object.version": "2.0"\')'
        f" WHERE instance_uuid = '{ACTIVE}'",
    )
    report = imported(nova, ours)
    (why,) = [each.why for each in report.left_out if each.key == ACTIVE]
    assert "of version 2.0; known is 1.x" in why
    assert instances.find(ours.of_cell("cell1"), DATAVOL) is not None


def test_a_text_that_is_too_long_here_leaves_out_its_server_only(nova: NovaOnDisk, ours: OurDatabases) -> None:
    """Users of Nova's API may write it."""
    nova.execute("cell1", f"UPDATE block_device_mapping SET disk_bus = '{'x' * 17}' WHERE instance_uuid = '{ACTIVE}'")
    report = imported(nova, ours)
    (why,) = [each.why for each in report.left_out if each.key == ACTIVE]
    assert "its disk_bus has 17 characters; 16 are possible here" in why
    assert instances.find(ours.of_cell("cell1"), DATAVOL) is not None


def test_a_cell_without_a_counterpart_is_named_with_the_command_that_makes_it(nova: NovaOnDisk, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    with (
        our_databases(tmp_path / "other", cells={"cell0": UUIDS["cell0"]}) as ours,
        pytest.raises(errors.Misconfigured) as refused,
    ):
        imported(nova, ours)
    assert f"causeway manage cell create --name cell1 --uuid {UUIDS['cell1']}" in refused.value.message
