"""A host with a real guest on a volume dies: the guest comes up on the other one. None is left when all hosts are ended."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from causeway.virt.lab.hosts import missing
from causeway.virt.libvirt.commands import run
from tests.functional.servers import patience
from tests.functional.servers.audited_cloud import AuditedCloud
from tests.functional.servers.dead_hosts import come_back
from tests.functional.servers.moves_cloud import until
from tests.integration.embedded_guests import cloud_with_guests, switch_off
from tests.integration.same_cell.test_same_cell_guests import said

REASON = missing()

pytestmark = [
    pytest.mark.libvirt,
    pytest.mark.skipif(REASON is not None, reason=str(REASON)),
    pytest.mark.timeout(600),
]


@pytest.fixture
def cloud(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[AuditedCloud]:
    monkeypatch.setattr(patience, "PATIENCE", 120.0)
    with cloud_with_guests(tmp_path_factory.mktemp("cloud"), cells=1, hosts_per_cell=2) as embedded:
        cloud = AuditedCloud(embedded)
        yield cloud
        cloud.clean()
        # The cloud does not know those that were started again.
        for service in embedded.computes.values():
            service.stop()


def test_an_evacuated_guest_comes_up_elsewhere_with_its_volume(cloud: AuditedCloud) -> None:
    server = cloud.boot_from_volume()
    dead, other = cloud.show(server).compute_host, cloud.other_host(server)
    first = said(cloud, server, dead, 1)

    switch_off(cloud.embedded, dead)
    compute = cloud.admin.compute
    asked = compute.post(f"/servers/{server.id}/action", json={"evacuate": {}}, microversion="2.96")
    assert asked.status_code == 200, asked.text
    cloud.settle()
    # From 2.95 on it is off then.
    cloud.wait(server, "SHUTOFF")
    cloud.member.compute.start_server(server.id)
    assert cloud.wait(server, "ACTIVE").compute_host == other
    there = said(cloud, server, other, 2)
    assert (there.ip, there.mac, there.first("vda")) == (first.ip, first.mac, first.first("vda"))

    come_back(cloud, dead)
    driver = cloud.parts.computes[dead].host.driver
    until(driver.list_guests, lambda guests: server.id not in guests, "the host to delete its guest")
    until(lambda: cloud.migration(server).status, lambda status: status == "completed", "the host to be clean")
    assert cloud.show(server).status == "ACTIVE"
    assert cloud.audit().is_clean


def test_none_is_left_when_the_cloud_has_ended(tmp_path: Path) -> None:
    with cloud_with_guests(tmp_path, cells=1, hosts_per_cell=1) as embedded:
        server = AuditedCloud(embedded).boot_from_volume()
        assert processes(server.id)
    assert processes(server.id) == []


def processes(uuid: str) -> list[str]:
    """Of the hypervisor."""
    return run("pgrep", "--full", f"guest=instance-{uuid}", accept=(0, 1)).split()
