"""Hosts of one store die: their servers keep their disks elsewhere, and what comes back deletes none of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from causeway import errors
from causeway.embedded.cloud import EmbeddedCloud
from causeway.model.states import MigrationStatus
from causeway.store.api import migrations
from tests.functional.servers.evacuate.test_evacuate import booted_on, come_back, die, evacuate, force_down
from tests.functional.servers.moves_cloud import until
from tests.functional.servers.shared_disks.shared_cloud import OPTIONS, SharedCloud

pytestmark = pytest.mark.embedded("stops compute services and starts them again")

DEAD, OTHER = "cell1-host1", "cell1-host2"


@pytest.fixture
def cloud(tmp_path: Path, put_state: Callable[[Path, int, int], None]) -> Iterator[SharedCloud]:
    put_state(tmp_path, 2, 2)
    embedded = EmbeddedCloud(tmp_path, port=0, cells=2, hosts_per_cell=2, overrides=OPTIONS)
    embedded.start()
    yield SharedCloud(embedded)
    for service in embedded.computes.values():
        service.stop()
    embedded.stop()


def evacuated(cloud: SharedCloud, server: Any) -> None:
    answer = evacuate(cloud, server)
    assert answer.status_code == 200, answer.text
    cloud.wait(server, "ACTIVE")
    cloud.settle()


def cleaned(cloud: SharedCloud, server: Any) -> None:
    until(lambda: cloud.migration(server).status, lambda seen: seen == "completed", "the host that is back to be clean")


def test_an_evacuated_server_has_the_data_of_its_disks(cloud: SharedCloud) -> None:
    server = booted_on(cloud, DEAD, cloud.with_disks)
    names = cloud.names(server)
    die(cloud, DEAD)
    evacuated(cloud, server)
    assert cloud.host_of(server) == OTHER
    for device in ("vda", "vdb", "vdc"):
        assert f"written on {device}" in cloud.read(server, device)
    cloud.write(server, "after it")
    come_back(cloud, DEAD)
    cleaned(cloud, server)
    assert "after it" in cloud.read(server)
    assert cloud.names(server) == names
    assert DEAD not in cloud.hosts_of(server)
    cloud.check_clean(server)
    cloud.member.compute.delete_server(server.id)
    cloud.member.compute.wait_for_delete(server)
    cloud.settle()
    assert cloud.names(server) == []


def test_a_guest_that_still_runs_where_its_server_was_evacuated_from_can_not_write(cloud: SharedCloud) -> None:
    server = booted_on(cloud, DEAD, cloud.with_disks)
    cloud.parts.computes[DEAD].stop()
    force_down(cloud, DEAD)
    evacuated(cloud, server)
    former = cloud.driver(DEAD)
    with pytest.raises(Exception, match="can't be written any more"):
        former.guest_write(server.id, "written by the former guest")
    assert "written by the former guest" not in cloud.read(server)
    come_back(cloud, DEAD)
    cleaned(cloud, server)
    assert cloud.hosts_of(server) == {OTHER: "guest"}
    # It can move there again.
    cloud.admin.compute.migrate_server(server.id)
    cloud.wait(server, "VERIFY_RESIZE")
    cloud.confirmed(server)
    assert cloud.host_of(server) == DEAD
    cloud.write(server, "back")
    assert "back" in cloud.read(server)


@pytest.mark.long
def test_an_evacuation_that_fails_leaves_the_disks_to_the_dead_host(
    cloud: SharedCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = booted_on(cloud, DEAD, cloud.with_disks)
    names = cloud.names(server)
    die(cloud, DEAD)

    def fail(*_arguments: Any, **_named: Any) -> None:
        raise errors.GuestFailed("There is no such machine type.")

    monkeypatch.setattr(cloud.driver(OTHER), "spawn", fail)
    assert evacuate(cloud, server).status_code == 200
    until(lambda: cloud.show(server).status, lambda seen: seen == "ERROR", "the evacuation to fail")
    cloud.settle()
    monkeypatch.undo()
    assert cloud.names(server) == names
    found = cloud.store.find(f"{server.id}_disk")
    assert found is not None and found.owner == f"{DEAD} 1"
    evacuated(cloud, server)
    assert "written on vda" in cloud.read(server)


def test_fixing_what_the_audit_finds_deletes_no_disk_that_a_server_runs_from(cloud: SharedCloud) -> None:
    """The hidden loss: a host has a folder of a server that lives elsewhere, with the same disks in it."""
    server = booted_on(cloud, DEAD, cloud.with_disks)
    names = cloud.names(server)
    die(cloud, DEAD)
    evacuated(cloud, server)
    driver = cloud.driver(OTHER)
    folder = cloud.embedded.state.host(DEAD) / "instances" / server.id
    assert folder.exists()
    # Nobody cleans it: the record of the evacuation is lost.
    migration = cloud.migration(server).uuid
    migrations.update(cloud.parts.api_database, migration, status=MigrationStatus.COMPLETED)
    come_back(cloud, DEAD)
    report = cloud.audit(fix=True)
    assert [each for each in report.disagreements if each.left is None] == []
    assert cloud.names(server) == names
    assert "written on vda" in driver.guest_read(server.id, "vda")
    driver.guest_write(server.id, "still there", "vda")
    assert "still there" in cloud.read(server)
