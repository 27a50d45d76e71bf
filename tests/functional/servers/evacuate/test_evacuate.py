"""A host is dead: its servers come up elsewhere, and when it comes back it holds nothing of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from causeway import errors
from causeway.conductor.cells.cloud_records import CloudEndpoint
from causeway.conductor.upkeep import cleaning
from causeway.conductor.upkeep.evacuated import EvacuatedEndpoint
from causeway.context import admin_context
from causeway.embedded.cloud import EmbeddedCloud
from causeway.model.states import MigrationStatus
from causeway.roles.compute import make_compute
from causeway.store.api import journal, migrations
from tests.functional.servers.audited_cloud import AuditedCloud
from tests.functional.servers.broken_hosts import lose_guest
from tests.functional.servers.moves_cloud import Cloud, until

pytestmark = pytest.mark.embedded("stops compute services and starts them again")

DEAD = "cell1-host1"


@pytest.fixture
def cloud(
    request: pytest.FixtureRequest, tmp_path: Path, put_state: Callable[[Path, int, int], None]
) -> Iterator[AuditedCloud]:
    hosts = getattr(request, "param", 2)
    put_state(tmp_path, 2, hosts)
    embedded = EmbeddedCloud(tmp_path, port=0, cells=2, hosts_per_cell=hosts)
    embedded.start()
    yield AuditedCloud(embedded)
    # Those that were started again are not known to it.
    for service in embedded.computes.values():
        service.stop()
    embedded.stop()


def evacuate(cloud: Cloud, server: Any, value: Any = None, version: str = "2.94") -> Any:
    return cloud.admin.compute.post(
        f"/servers/{server.id}/action", json={"evacuate": value or {}}, microversion=version
    )


def force_down(cloud: Cloud, host: str, down: bool = True) -> None:
    compute = cloud.admin.compute
    service = compute.get("/os-services", params={"host": host}, microversion="2.53").json()["services"][0]
    answer = compute.put(f"/os-services/{service['id']}", json={"forced_down": down}, microversion="2.53")
    assert answer.status_code == 200


def die(cloud: Cloud, host: str) -> None:
    """The host loses its power, and somebody who made sure of that says so."""
    cloud.parts.computes[host].stop()
    for uuid in cloud.driver(host).list_guests():
        cloud.driver(host).power_off(uuid, 0)
    force_down(cloud, host)


def come_back(cloud: Cloud, host: str) -> None:
    embedded = cloud.parts
    cell = next(cell for cell in embedded.cells.mappings() if cell.name == host[:5])
    driver = embedded.hosts.driver(host)
    service = make_compute(embedded.around_of_hosts, host, driver, cell.transport_url, embedded.state.host(host))
    embedded.computes[host] = service
    force_down(cloud, host, False)
    service.start()


def booted_on(cloud: Cloud, host: str, make: Any) -> Any:
    for _attempt in range(4):
        server = make()
        if cloud.show(server).compute_host == host:
            return server
    raise AssertionError(f"no server on {host}")


@pytest.mark.parametrize("kind", ["image", "volume"])
def test_a_server_of_a_dead_host_comes_up_elsewhere(cloud: AuditedCloud, kind: str) -> None:
    server = booted_on(cloud, DEAD, cloud.boot if kind == "image" else cloud.boot_from_volume)
    volume = cloud.volume()
    cloud.attach(server, volume)
    ports = dict.fromkeys(cloud.ports(server))
    assert evacuate(cloud, server).json()["badRequest"]["message"] == f"Compute service of {DEAD} is still in use."

    die(cloud, DEAD)
    assert evacuate(cloud, server, {"host": DEAD}).status_code == 400
    assert evacuate(cloud, server, {"host": "nowhere"}).status_code == 404
    assert evacuate(cloud, server, {"host": "cell2-host1"}).status_code == 404
    # The network service needs its time, and its message must find the host that waits for it.
    cloud.parts.devcloud.plug_delay = 0.5
    answer = evacuate(cloud, server)
    assert (answer.status_code, answer.content) == (200, b"")
    found = until(
        lambda: cloud.show(server), lambda found: found.task_state is None and found.status != "ERROR", "the evacuation"
    )
    assert (found.status, found.compute_host) == ("ACTIVE", "cell1-host2")
    assert dict.fromkeys(cloud.ports(server)) == ports
    assert {status for _, status, _ in cloud.reality(server)["attachments"]} == {"attached"}
    assert cloud.events(server, "evacuate") == [("rebuild_server", "Success"), ("compute_rebuild_instance", "Success")]
    migration = cloud.migration(server)
    assert (migration.migration_type, migration.status) == ("evacuation", "done")
    assert list(cloud.allocations(migration.uuid)) == [DEAD]
    assert list(cloud.allocations(server.id)) == ["cell1-host2"]

    come_back(cloud, DEAD)
    until(lambda: cloud.migration(server).status, lambda status: status == "completed", "the host to be cleaned")
    assert cloud.hosts_of(server) == {"cell1-host2": "guest"}
    assert cloud.allocations(migration.uuid) == {}
    assert cloud.audit().disagreements == []
    assert cloud.show(server).status == "ACTIVE"


def test_a_host_that_comes_back_while_the_end_of_the_evacuation_is_repeated(
    cloud: AuditedCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = booted_on(cloud, DEAD, cloud.boot)
    die(cloud, DEAD)
    update, lost = migrations.update, list[Any]()

    def losing(database: Any, uuid: str, **changes: Any) -> None:
        update(database, uuid, **changes)
        if changes.get("status") is MigrationStatus.DONE and not lost:
            lost.append(uuid)
            come_back(cloud, DEAD)
            until(
                lambda: cloud.migration(server).status, lambda status: status == "completed", "the host to be cleaned"
            )
            raise errors.DatabaseFailed("The connection broke after the commit.")

    monkeypatch.setattr(migrations, "update", losing)
    evacuate(cloud, server)
    cloud.settle()
    assert lost
    assert cloud.wait(server, "ACTIVE").compute_host == "cell1-host2"
    assert journal.of_server(cloud.parts.api_database, server.id)[-1].state == "done"
    assert cloud.audit().disagreements == []


@pytest.mark.parametrize("cloud", [1], indirect=True, ids=["one host in each cell"])
def test_where_nothing_fits_the_server_stays_as_it_was(cloud: AuditedCloud) -> None:
    server = booted_on(cloud, DEAD, cloud.boot)
    die(cloud, DEAD)
    allocations = cloud.allocations(server.id)
    assert evacuate(cloud, server).status_code == 200
    until(
        lambda: [found.status for found in cloud.admin.compute.migrations(instance_uuid=server.id)],
        lambda statuses: statuses == ["error"],
        "the evacuation to fail",
    )
    found = until(lambda: cloud.show(server), lambda found: found.task_state is None, "the server to rest")
    assert (found.status, found.compute_host) == ("ACTIVE", DEAD)
    assert cloud.events(server, "evacuate") == [("rebuild_server", "Error")]
    assert cloud.allocations(server.id) == allocations
    assert cloud.allocations(cloud.migration(server).uuid) == {}


def test_the_service_of_a_host_that_never_came_back_can_be_deleted(cloud: AuditedCloud) -> None:
    """Bugs 1829479, 1817833: what the evacuated server still holds there goes with the host's provider."""
    server = booted_on(cloud, DEAD, cloud.boot)
    die(cloud, DEAD)
    assert evacuate(cloud, server).status_code == 200
    until(
        lambda: [found.status for found in cloud.admin.compute.migrations(instance_uuid=server.id)],
        lambda statuses: statuses == ["done"],
        "the evacuation",
    )
    cloud.wait(server, "ACTIVE")
    assert list(cloud.allocations(cloud.migration(server).uuid)) == [DEAD]

    service = next(each for each in cloud.admin.compute.services() if each.host == DEAD)
    answer = cloud.admin.compute.delete(f"/os-services/{service.id}", microversion="2.53")
    assert answer.status_code == 204, answer.text
    assert DEAD not in {provider.name for provider in cloud.parts.around.placement.list_providers()}
    assert cloud.allocations(cloud.migration(server).uuid) == {}
    assert list(cloud.allocations(server.id)) == ["cell1-host2"]


def test_from_2_95_on_the_server_is_off_until_its_user_starts_it(cloud: AuditedCloud) -> None:
    server = booted_on(cloud, DEAD, cloud.boot)
    die(cloud, DEAD)
    evacuate(cloud, server, {"host": "cell1-host2"}, version="2.95")
    found = until(lambda: cloud.show(server), lambda found: found.compute_host != DEAD, "the evacuation")
    assert cloud.wait(server, "SHUTOFF").compute_host == found.compute_host
    cloud.member.compute.start_server(server.id)
    cloud.wait(server, "ACTIVE")
    assert cloud.parts.computes[DEAD] is not None


def test_a_host_that_died_while_a_resize_waits_is_not_evacuated(cloud: AuditedCloud) -> None:
    server = cloud.boot()
    cloud.resized(server)
    host = cloud.show(server).compute_host
    die(cloud, host)
    answer = evacuate(cloud, server)
    assert answer.status_code == 409 and "resized" in answer.json()["conflictingRequest"]["message"]


def evacuated(cloud: AuditedCloud) -> Any:
    """A server that left its dead host for the other one of its cell."""
    server = booted_on(cloud, DEAD, cloud.boot)
    die(cloud, DEAD)
    evacuate(cloud, server, {"host": "cell1-host2"})
    until(
        lambda: [found.status for found in cloud.admin.compute.migrations(instance_uuid=server.id)],
        lambda statuses: statuses == ["done"],
        "the evacuation",
    )
    return server


def test_the_old_disks_stay_while_the_new_host_has_nothing(cloud: AuditedCloud) -> None:
    server = evacuated(cloud)
    cloud.wait(server, "ACTIVE")
    lose_guest(cloud.driver("cell1-host2"), server.id)
    come_back(cloud, DEAD)
    conductor = cloud.parts.conductor
    EvacuatedEndpoint(conductor._services).clean_evacuated(admin_context(), host=DEAD)
    assert cloud.hosts_of(server) == {DEAD: "guest"}
    assert cloud.driver(DEAD).running_anywhere(server.id) == []
    assert cloud.migration(server).status == "done"


def test_a_host_that_could_not_be_cleaned_when_it_came_back_is_cleaned_later(
    cloud: AuditedCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise errors.DatabaseFailed("The API's database is unreachable.")

    server = evacuated(cloud)
    monkeypatch.setattr(CloudEndpoint, "host_is_back", fails)
    # Its report is taken all the same.
    come_back(cloud, DEAD)
    assert set(cloud.hosts_of(server)) == {DEAD, "cell1-host2"}
    services = cloud.embedded.conductor._services

    def look() -> Any:
        cleaning.look(services)
        return cloud.migration(server).status

    until(
        look,
        lambda status: status == "completed",
        "the host to be cleaned",
    )
    assert cloud.hosts_of(server) == {"cell1-host2": "guest"}
