"""A host is dead: its servers come up elsewhere, and when it comes back it holds nothing of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from audited_cloud import AuditedCloud
from moves_cloud import Cloud, until

from causeway.embedded.cloud import EmbeddedCloud
from causeway.store.cell import hosts

DEAD = "cell1-host1"


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[AuditedCloud]:
    embedded = EmbeddedCloud(tmp_path, port=0, cells=2, hosts_per_cell=2)
    embedded.start()
    yield AuditedCloud(embedded)
    embedded.stop()


def evacuate(cloud: Cloud, server: Any, value: Any = None, version: str = "2.94") -> Any:
    return cloud.admin.compute.post(
        f"/servers/{server.id}/action", json={"evacuate": value or {}}, microversion=version
    )


def force_down(cloud: Cloud, host: str, down: bool = True) -> None:
    database = cloud.cell(host[:5])
    service = hosts.list_services(database, host=host, binary="nova-compute")[0]
    hosts.update_service(database, service.uuid, forced_down=down)


def booted_on(cloud: Cloud, host: str, make: Any) -> Any:
    for _attempt in range(4):
        server = make()
        if cloud.show(server).compute_host == host:
            return server
    raise AssertionError(f"no server on {host}")


@pytest.mark.parametrize("kind", ["image", "volume"])
def test_a_server_of_a_dead_host(cloud: AuditedCloud, kind: str) -> None:
    server = booted_on(cloud, DEAD, cloud.boot if kind == "image" else cloud.boot_from_volume)
    volume = cloud.volume()
    cloud.attach(server, volume)
    ports = {port: None for port in cloud.ports(server)}
    assert evacuate(cloud, server).json()["badRequest"]["message"] == f"Compute service of {DEAD} is still in use."

    dead = cloud.embedded.computes[DEAD]
    guest = cloud.driver(DEAD)
    guest.power_off(server.id, 0)
    dead.stop()
    force_down(cloud, DEAD)
    assert evacuate(cloud, server, {"host": DEAD}).status_code == 400
    assert evacuate(cloud, server, {"host": "nowhere"}).status_code == 404
    assert evacuate(cloud, server, {"host": "cell2-host1"}).status_code == 404
    answer = evacuate(cloud, server)
    assert (answer.status_code, answer.content) == (200, b"")
    found = until(
        lambda: cloud.show(server), lambda found: found.task_state is None and found.status != "ERROR", "the evacuation"
    )
    assert (found.status, found.compute_host) == ("ACTIVE", "cell1-host2")
    assert {port: None for port in cloud.ports(server)} == ports
    assert {status for _, status, _ in cloud.reality(server)["attachments"]} == {"attached"}
    assert cloud.events(server, "evacuate") == [("rebuild_server", "Success"), ("compute_rebuild_instance", "Success")]
    migration = cloud.migration(server)
    assert (migration.migration_type, migration.status) == ("evacuation", "done")
    assert list(cloud.allocations(migration.uuid)) == [DEAD]
    assert list(cloud.allocations(server.id)) == ["cell1-host2"]

    guest.start()
    force_down(cloud, DEAD, False)
    cloud.embedded.restart_compute(DEAD) if hasattr(cloud.embedded, "restart_compute") else dead_again(cloud)
    until(lambda: cloud.migration(server).status, lambda status: status == "completed", "the host to be cleaned")
    assert cloud.hosts_of(server) == {"cell1-host2": "guest"}
    assert cloud.allocations(migration.uuid) == {}
    assert cloud.audit().disagreements == []
    assert cloud.show(server).status == "ACTIVE"
