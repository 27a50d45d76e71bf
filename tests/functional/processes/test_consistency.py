"""nova-manage's ways and exit statuses: ``causeway manage cell verify-instance`` and others."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from click.testing import CliRunner, Result

from causeway import errors
from causeway.cli import consistency
from causeway.cli.main import cli
from causeway.clients.placement import Inventory, PlacementClient
from causeway.embedded.placement.local import local_placement
from causeway.model.block_device import BlockDevice
from causeway.model.flavor import Flavor
from causeway.model.host import ComputeNode
from causeway.model.instance import Instance
from causeway.model.migration import Migration
from causeway.model.operations import Operation
from causeway.model.states import MigrationStatus, VmState
from causeway.store.api import cells, journal, mappings, migrations
from causeway.store.cell import block_devices, copies, hosts, instances
from causeway.store.database import Database, utcnow

FLAVOR = Flavor(id=1, flavorid="1", name="small", vcpus=1, memory_mb=64, root_gb=1)


class Site:
    """cell0, cell1 and cell2, and a host in cell1."""

    def __init__(self, directory: Path) -> None:
        self._options = directory / "causeway.conf"
        self._options.write_text(
            f"[api_database]\nconnection = sqlite:///{directory}/api.sqlite\n[placement]\nauth_type = none\n"
        )
        self.manage("db", "sync", "--cell0", f"sqlite:///{directory}/cell0.sqlite")
        for name in ("cell1", "cell2"):
            url = f"sqlite:///{directory}/{name}.sqlite"
            made = self.manage(
                "cell", "create", "--name", name, "--transport-url", "fake://", "--database-connection", url
            )
            assert made.exit_code == 0, made.output
        self.api = Database(f"sqlite:///{directory}/api.sqlite", "the API")
        self.cells = {name: Database(f"sqlite:///{directory}/{name}.sqlite", name) for name in ("cell1", "cell2")}
        self.uuids = {cell.name: cell.uuid for cell in cells.list_cells(self.api)}
        self.node = str(uuid4())
        hosts.save_node(self.cells["cell1"], ComputeNode(self.node, "host1", "host1", "QEMU", 8, 8192, 100, 1))

    def manage(self, *arguments: str) -> Result:
        return CliRunner().invoke(cli, ["manage", *arguments, f"--config-file={self._options}"])

    def record(self, cell: str = "cell1", uuid: str | None = None, **more: Any) -> str:
        found = Instance(uuid or str(uuid4()), "project", "user", "server", FLAVOR, vm_state=VmState.ACTIVE, **more)
        with self.cells[cell].write() as connection:
            instances.insert(connection, found)
        return found.uuid

    def map(self, uuid: str, cell_uuid: str | None, **more: Any) -> None:
        with self.api.write() as connection:
            mappings.insert_in(
                connection, mappings.InstanceMapping(uuid, "project", "user", utcnow(), cell_uuid, **more)
            )

    def server(self, cell: str = "cell1", **more: Any) -> str:
        uuid = self.record(cell, **more)
        self.map(uuid, self.uuids[cell])
        return uuid

    def home(self, uuid: str) -> str | None:
        try:
            return mappings.get(self.api, uuid).cell_uuid
        except errors.ServerNotFound:
            return None

    def break_cell2(self, directory: Path) -> None:
        (cell2,) = (cell for cell in cells.list_cells(self.api) if cell.name == "cell2")
        cell2.database_connection = f"sqlite:///{directory}/no/such/directory.sqlite"
        cells.save_cell(self.api, cell2)

    def close(self) -> None:
        for database in (self.api, *self.cells.values()):
            database.close()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    made.close()


class TestVerifyInstance:
    def verify(self, site: Site, uuid: str) -> tuple[int, str]:
        reported = site.manage("cell", "verify-instance", "--uuid", uuid)
        quiet = site.manage("cell", "verify-instance", "--uuid", uuid, "--quiet")
        assert (quiet.exit_code, quiet.output) == (reported.exit_code, "")
        return reported.exit_code, reported.output

    def test_a_server_in_its_cell_is_verified(self, site: Site) -> None:
        status, said = self.verify(site, site.server("cell2"))
        assert status == 0 and "cell2" in said and site.uuids["cell2"] in said

    def test_scripts_for_nova_find_their_words(self, site: Site) -> None:
        uuid = site.server()
        assert site.manage("cell_v2", "verify_instance", "--uuid", uuid).exit_code == 0
        assert site.manage("volume_attachment", "show", uuid, str(uuid4())).exit_code == 3
        assert site.manage("db", "archive_deleted_rows").exit_code == 0
        assert site.manage("cell_v3", "verify_instance", "--uuid", uuid).exit_code == 2

    def test_a_server_without_a_mapping_or_a_cell_has_its_exit_status(self, site: Site) -> None:
        assert self.verify(site, site.record())[0] == 1
        building, lost = str(uuid4()), str(uuid4())
        site.map(building, None)
        site.map(lost, str(uuid4()))
        assert self.verify(site, building)[0] == 2
        assert self.verify(site, lost)[0] == 2

    def test_deleted_and_archived_servers_have_their_exit_status(self, site: Site) -> None:
        deleted, archived = site.server(), site.server()
        instances.soft_delete(site.cells["cell1"], deleted)
        copies.hard_delete(site.cells["cell1"], archived)
        assert self.verify(site, deleted)[0] == 3
        assert self.verify(site, archived)[0] == 4

    def test_a_cell_that_does_not_answer_makes_it_unknown(self, site: Site, tmp_path: Path) -> None:
        uuid = site.server("cell2")
        site.break_cell2(tmp_path)
        reported = site.manage("cell", "verify-instance", "--uuid", uuid)
        assert reported.exit_code == 255 and "cell2" in reported.stderr


class TestMapInstances:
    def map(self, site: Site, *more: str, cell: str | None = None) -> Result:
        return site.manage("cell", "map-instances", "--cell_uuid", cell or site.uuids["cell1"], *more)

    def test_servers_without_a_mapping_get_one(self, site: Site) -> None:
        there, lost, other = site.server(), site.record(), site.record("cell2")
        assert self.map(site).exit_code == 0
        assert (site.home(there), site.home(lost), site.home(other)) == (site.uuids["cell1"], site.uuids["cell1"], None)
        mapping = mappings.get(site.api, lost)
        assert (mapping.project_id, mapping.deleted, mapping.queued_for_delete) == ("project", False, False)
        assert mapping.created_at == instances.get(site.cells["cell1"], lost).created_at
        assert mappings.get_spec(site.api, lost)["flavor"]["vcpus"] == 1
        again = self.map(site, "--reset")
        assert again.exit_code == 0 and "Mapped to cell1: 0" in again.stdout
        assert site.manage("cell", "verify-instance", "--uuid", lost).exit_code == 0

    def test_the_oldest_are_mapped_first_up_to_a_count(self, site: Site) -> None:
        began = datetime(2026, 1, 1)
        uuids = [site.record(created_at=began - timedelta(days=days)) for days in range(3)]
        first = self.map(site, "--max-count", "2")
        assert first.exit_code == 1 and "Left: 1" in first.stdout
        assert [site.home(uuid) is not None for uuid in uuids] == [False, True, True]
        assert self.map(site, "--max-count", "2").exit_code == 0
        assert site.home(uuids[0]) is not None

    def test_more_than_go_in_one_transaction(self, site: Site) -> None:
        uuids = [site.record() for _number in range(51)]
        assert self.map(site).exit_code == 0
        assert all(site.home(uuid) for uuid in uuids)

    def test_what_could_be_the_wrong_copy_is_left(self, site: Site) -> None:
        hidden, closed, twice, moving = (
            site.record(hidden=True),
            site.record(),
            site.record(),
            site.record(),
        )
        site.record("cell2", twice)
        with site.cells["cell1"].write() as connection:
            instances.close_in(connection, closed, str(uuid4()))
        begin(site, moving)
        reported = self.map(site)
        assert reported.exit_code == 1 and "Left: 4" in reported.stdout
        assert [site.home(uuid) for uuid in (hidden, closed, twice, moving)] == [None] * 4
        assert f"{twice}: not mapped, cell2 has a record of it too." in reported.stderr

    def test_a_server_that_left_a_hidden_copy_elsewhere_is_mapped_where_it_is_seen(self, site: Site) -> None:
        uuid = site.record()
        site.record("cell2", uuid, hidden=True)
        assert self.map(site).exit_code == 0
        assert site.home(uuid) == site.uuids["cell1"]

    def test_deleted_ones_stay_without(self, site: Site) -> None:
        uuid = site.record()
        instances.soft_delete(site.cells["cell1"], uuid)
        assert self.map(site).exit_code == 0
        assert site.home(uuid) is None

    def test_wrong_counts_and_cells_are_refused(self, site: Site) -> None:
        for count in ("0", "-1"):
            assert self.map(site, "--max-count", count).exit_code == 127
        assert self.map(site, cell=str(uuid4())).exit_code == 255

    def test_nothing_is_mapped_while_a_cell_is_down(self, site: Site, tmp_path: Path) -> None:
        uuid = site.record()
        site.break_cell2(tmp_path)
        reported = self.map(site)
        assert reported.exit_code == 255 and "cell2" in reported.stderr
        assert site.home(uuid) is None


@pytest.fixture
def placement(tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[PlacementClient]:
    """The real Placement in this process, with the providers of host1 and of one that is no compute node."""
    running = local_placement(tmp_path / "placement.sqlite")
    monkeypatch.setattr(consistency, "remote_placement", lambda _conf: running.client())
    client = running.client()
    for uuid in (site.node, OTHERS_PROVIDER):
        client.ensure_provider(uuid, f"provider-{uuid}")
        client.set_inventory(uuid, {"VCPU": Inventory(8)})
    yield client
    running.close()


OTHERS_PROVIDER = "0e0e0e0e-0000-0000-0000-000000000000"


def begin(site: Site, server: str, migration: str | None = None) -> None:
    """A move of the server, in the journal."""
    move = Operation(
        id=str(uuid4()),
        migration_uuid=migration or str(uuid4()),
        instance_uuid=server,
        recipe="resize",
        started_at=utcnow(),
    )
    with site.api.write() as connection:
        journal.insert_in(connection, move)


def migration_of(site: Site, server: str, status: MigrationStatus) -> str:
    made = Migration(
        uuid=str(uuid4()), instance_uuid=server, migration_type="resize", status=status, source_compute="host1"
    )
    with site.api.write() as connection:
        migrations.insert_in(connection, made)
    return made.uuid


class TestPlacementAudit:
    def hold(self, client: PlacementClient, consumer: str, provider: str) -> str:
        client.claim(consumer, {provider: {"VCPU": 1}}, "project", "user")
        return consumer

    def holding(self, client: PlacementClient, provider: str) -> set[str]:
        return set(client.get_provider_allocations(provider))

    def test_what_belongs_to_somebody_is_none(self, site: Site, placement: PlacementClient) -> None:
        building, cancelled, copy = str(uuid4()), str(uuid4()), site.record(hidden=True)
        site.map(building, None)
        site.map(cancelled, None, queued_for_delete=True)
        going = site.server()
        mappings.queue_for_delete(site.api, going)
        moving, ended = site.server(), site.server()
        under_way = migration_of(site, moving, MigrationStatus.MIGRATING)
        ending = migration_of(site, ended, MigrationStatus.CONFIRMED)
        begin(site, ended, ending)
        held = {
            self.hold(placement, consumer, site.node)
            for consumer in (building, cancelled, copy, going, site.server(), under_way, ending)
        }
        # Somebody else's, with whom Placement is shared.
        self.hold(placement, str(uuid4()), OTHERS_PROVIDER)
        found = site.manage("placement", "audit", "--delete")
        assert (found.exit_code, found.stdout) == (0, "There are no orphaned allocations.\n")
        assert self.holding(placement, site.node) == held

    def test_orphans_are_found_and_deleted(self, site: Site, placement: PlacementClient) -> None:
        server = self.hold(placement, site.server(), site.node)
        deleted = self.hold(placement, site.server(), site.node)
        mappings.queue_for_delete(site.api, deleted)
        instances.soft_delete(site.cells["cell1"], deleted)
        old = self.hold(placement, migration_of(site, server, MigrationStatus.CONFIRMED), site.node)
        unknown = self.hold(placement, str(uuid4()), site.node)
        found = site.manage("placement", "audit", "--verbose")
        assert found.exit_code == 3
        assert all(f"Orphaned: allocations of {one}" in found.stdout for one in (deleted, old, unknown))
        assert f"{site.node}: 1 VCPU" in found.stdout
        assert len(self.holding(placement, site.node)) == 4
        assert site.manage("placement", "audit", "--delete").exit_code == 4
        assert self.holding(placement, site.node) == {server}
        assert site.manage("placement", "audit", "--delete").exit_code == 0

    def test_one_provider_can_be_audited(self, site: Site, placement: PlacementClient) -> None:
        self.hold(placement, str(uuid4()), site.node)
        assert site.manage("placement", "audit", "--resource_provider", OTHERS_PROVIDER).exit_code == 0
        assert site.manage("placement", "audit", "--resource_provider", site.node).exit_code == 3
        assert site.manage("placement", "audit", "--resource_provider", str(uuid4())).exit_code == 127

    def test_what_a_server_may_need_is_kept(self, site: Site, placement: PlacementClient) -> None:
        """A revert that died before it returned the allocation: the server holds nothing itself."""
        old = self.hold(placement, migration_of(site, site.server(), MigrationStatus.REVERTED), site.node)
        kept = site.manage("placement", "audit", "--delete")
        assert kept.exit_code == 3 and "causeway audit --fix" in kept.stdout
        assert self.holding(placement, site.node) == {old}

    def test_nothing_is_deleted_while_a_cell_is_down(
        self, site: Site, placement: PlacementClient, tmp_path: Path
    ) -> None:
        unknown = self.hold(placement, str(uuid4()), site.node)
        site.break_cell2(tmp_path)
        failed = site.manage("placement", "audit", "--delete")
        assert failed.exit_code == 1 and "cell2" in failed.stderr
        assert self.holding(placement, site.node) == {unknown}


class TestConnector:
    def test_the_connector_is_what_block_storage_learns_of_this_host(self, site: Site) -> None:
        pytest.importorskip("os_brick")
        shown = site.manage("volume-attachment", "get-connector", "--json")
        assert shown.exit_code == 0, shown.stderr
        found = json.loads(shown.stdout)
        assert found["host"] and found["ip"]


class TestVolumeAttachment:
    def show(self, site: Site, server: str, volume: str, *more: str) -> Result:
        return site.manage("volume-attachment", "show", server, volume, *more)

    def attach(self, site: Site, server: str) -> BlockDevice:
        device = BlockDevice(
            str(uuid4()),
            server,
            "volume",
            "volume",
            device_name="/dev/vdb",
            volume_id=str(uuid4()),
            attachment_id=str(uuid4()),
            connection_info={"driver_volume_type": "iscsi", "data": {"auth_password": "swordfish", "target_lun": 1}},
        )
        block_devices.add(site.cells["cell1"], device)
        return device

    def test_an_attachment_is_shown_without_passwords(self, site: Site) -> None:
        server = site.server()
        device = self.attach(site, server)
        volume = str(device.volume_id)
        shown = self.show(site, server, volume, "--json")
        assert shown.exit_code == 0
        reported = json.loads(shown.stdout)
        assert (reported["attachment_id"], reported["device_name"]) == (device.attachment_id, "/dev/vdb")
        assert reported["connection_info"]["data"]["target_lun"] == 1
        table = self.show(site, server, volume)
        assert table.exit_code == 0 and "/dev/vdb" in table.stdout
        assert "swordfish" not in shown.output + table.output

    def test_what_there_is_not(self, site: Site, tmp_path: Path) -> None:
        server, deleted, elsewhere = site.server(), site.server(), site.server("cell2")
        volume = str(self.attach(site, server).volume_id)
        of_deleted = str(self.attach(site, deleted).volume_id)
        instances.soft_delete(site.cells["cell1"], deleted)
        assert self.show(site, str(uuid4()), volume).exit_code == 2
        assert self.show(site, deleted, of_deleted).exit_code == 2
        assert self.show(site, server, str(uuid4())).exit_code == 3
        site.break_cell2(tmp_path)
        assert self.show(site, elsewhere, volume).exit_code == 1
