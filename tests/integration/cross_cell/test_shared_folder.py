"""Real guests whose disks are in a folder that all hosts mount, in both cells: what moves is the server, and never its disk."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from causeway.virt.lab.hosts import Lab, missing
from causeway.virt.libvirt.storage import qemu_img
from tests.functional.servers import patience
from tests.functional.servers.audited_cloud import AuditedCloud
from tests.functional.servers.broken_hosts import force_down
from tests.functional.servers.dead_hosts import come_back
from tests.functional.servers.moves_cloud import until
from tests.integration.cross_cell.test_guests_across_cells import TICKING, migrated, ticks
from tests.integration.embedded_guests import cloud_with_guests, switch_off
from tests.integration.same_cell.test_same_cell_guests import said

REASON = missing()
pytestmark = [
    pytest.mark.libvirt,
    pytest.mark.skipif(REASON is not None, reason=str(REASON)),
    pytest.mark.timeout(900),
]


class SharedFolderCloud(AuditedCloud):
    """``folder``: the one that all hosts mount."""

    folder: Path

    def disk(self, server: Any) -> Path:
        (found,) = (self.folder / "disks").glob(f"{server.id}_disk")
        return found

    def check(self, server: Any, inode: int, boots: int) -> Any:
        """The disk is the same file as ever and this host's, and its guest has read what was written before."""
        host = self.show(server).compute_host
        assert self.disk(server).stat().st_ino == inode
        owner, _, _ = (self.folder / "owners" / self.disk(server).name).read_text().partition(" ")
        assert owner == host
        console = said(self, server, host, boots)
        for name, service in self.parts.computes.items():
            assert service.host.driver.inspect(server.id).has_disks is (name == host)
        assert self.audit().is_clean
        return console


@contextmanager
def cloud_on(tmp_path_factory: pytest.TempPathFactory, cells: int, hosts_per_cell: int) -> Iterator[SharedFolderCloud]:
    folder = tmp_path_factory.mktemp("shared")
    options: dict[str, Any] = {"overrides": {"libvirt": {"shared_disks_path": str(folder)}}}
    state = tmp_path_factory.mktemp("cloud")
    with cloud_with_guests(state, cells=cells, hosts_per_cell=hosts_per_cell, **options) as embedded:
        cloud = SharedFolderCloud(embedded)
        cloud.folder = folder
        yield cloud
        cloud.heal()
        cloud.settle()
        cloud.clean()
        assert list((folder / "disks").iterdir()) == list((folder / "owners").iterdir()) == []
        # The cloud does not know those that were started again.
        for service in embedded.computes.values():
            service.stop()


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "PATIENCE", 180.0)


@pytest.fixture
def cloud(tmp_path_factory: pytest.TempPathFactory, patient: None) -> Iterator[SharedFolderCloud]:  # noqa: ARG001
    with cloud_on(tmp_path_factory, 2, 1) as cloud:
        yield cloud


@pytest.fixture
def cell(tmp_path_factory: pytest.TempPathFactory, patient: None) -> Iterator[SharedFolderCloud]:  # noqa: ARG001
    """One cell, with two hosts."""
    with cloud_on(tmp_path_factory, 1, 2) as cloud:
        yield cloud


def test_a_server_is_resized_to_the_other_cell_and_back(cloud: SharedFolderCloud) -> None:
    server = cloud.boot()
    source = cloud.show(server).compute_host
    there = next(host for host in cloud.parts.computes if host != source)
    inode, first = cloud.disk(server).stat().st_ino, said(cloud, server, source, 1)
    assert qemu_img.layer_below(cloud.disk(server)) is not None

    cloud.resized(server, "gen2.small")
    assert cloud.show(server).compute_host == there
    cloud.member.compute.revert_server_resize(server.id)
    cloud.wait(server, "ACTIVE")
    cloud.settle()
    assert cloud.check(server, inode, 2).first("vda") == first.first("vda")

    cloud.resized(server, "gen2.small")
    cloud.confirmed(server)
    cloud.settle()
    cloud.check(server, inode, 3)
    assert cloud.member.compute.create_server_image(server, "copy", wait=True, timeout=180).status == "active"
    # Nothing of the moves is kept in the disk when its guest has started.
    cloud.member.compute.reboot_server(server.id, "HARD")
    cloud.wait(server, "ACTIVE")
    cloud.settle()
    assert qemu_img.info(cloud.disk(server)).get("snapshots", []) == []


def test_a_guest_goes_live_to_the_other_cell_and_near_live_back(cloud: SharedFolderCloud) -> None:
    server = cloud.boot(flavor="any.small", config_drive=True, user_data=base64.b64encode(TICKING).decode())
    source, inode = cloud.show(server).compute_host, cloud.disk(server).stat().st_ino
    there = next(host for host in cloud.parts.computes if host != source)
    identity, number = ticks(cloud, server, source)
    assert migrated(cloud, server, there) == "live_migration"
    identified, number = ticks(cloud, server, there, after=number)
    assert identified == identity
    with Lab(cloud.embedded.state.lab).network.hypervisors_apart(there):
        assert migrated(cloud, server, source) == "near_live_migration"
    assert ticks(cloud, server, source, after=number)[0] == identity
    assert cloud.disk(server).stat().st_ino == inode and cloud.audit().is_clean


def test_a_dead_host_s_disk_is_taken_over_once_nobody_has_it_open(cell: SharedFolderCloud) -> None:
    server = cell.boot()
    dead, inode = cell.show(server).compute_host, cell.disk(server).stat().st_ino
    first = said(cell, server, dead, 1)
    # Somebody says that it is dead, and its guest runs.
    cell.parts.computes[dead].stop()
    force_down(cell.embedded, dead)
    evacuate(cell, server)
    until(lambda: cell.migration(server).status, lambda status: status == "error", "the evacuation to be refused")
    cell.settle()
    assert (cell.folder / "owners" / f"{server.id}_disk").read_text() == f"{dead} 1"

    switch_off(cell.embedded, dead)
    evacuate(cell, server)
    cell.settle()
    until(lambda: cell.migration(server).status, lambda status: status == "done", "the evacuation to end")
    other = cell.show(server).compute_host
    assert other != dead and cell.disk(server).stat().st_ino == inode
    cell.member.compute.start_server(server.id)
    cell.wait(server, "ACTIVE")
    assert said(cell, server, other, 2).first("vda") == first.first("vda")

    come_back(cell, dead)
    until(lambda: cell.migration(server).status, lambda status: status == "completed", "the host to be clean")
    cell.check(server, inode, 2)


def evacuate(cloud: SharedFolderCloud, server: Any) -> None:
    asked = cloud.admin.compute.post(f"/servers/{server.id}/action", json={"evacuate": {}}, microversion="2.96")
    assert asked.status_code == 200, asked.text
