"""Real guests go from one Ceph to another, and between a Ceph and files: cold with rounds, live with a copy by QEMU."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from causeway.moves.memory import MoveMemory
from tests.integration.real_services import ceph
from tests.integration.real_services.ceph_cloud import CephCloud, apart_cloud

pytestmark = [pytest.mark.timeout(900), pytest.mark.libvirt]
#: hosts with a Ceph of their own; the others have files
ONE, TWO = "cell1-host1", "cell2-host1"
FILES, FILES_ELSEWHERE = "cell1-host2", "cell2-host2"
WAYS = {
    "from a Ceph into another": (ONE, TWO),
    "from a Ceph into files": (ONE, FILES),
    "from files into a Ceph": (FILES, ONE),
    "from files into a Ceph elsewhere": (FILES, TWO),
}


@pytest.fixture(scope="module")
def running() -> Iterator[CephCloud]:
    if reason := ceph.missing():
        pytest.skip(reason)
    with (
        tempfile.TemporaryDirectory(prefix="causeway-ceph-", ignore_cleanup_errors=True) as folder,
        apart_cloud(Path(folder), [ONE, TWO]) as cloud,
    ):
        yield cloud


@pytest.fixture
def cloud(running: CephCloud) -> Iterator[CephCloud]:
    yield running
    running.settle()
    running.clean()
    assert running.images_of_all() == {ONE: [], TWO: []}


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> tuple[str, str]:
    return WAYS[request.param]


def booted(cloud: CephCloud, host: str) -> Any:
    flavor = cloud.flavor("ceph.apart", ram=128, disk=1, ephemeral=1, swap=64)
    others = [each for each in cloud.admin.compute.services(binary="nova-compute") if each.host != host]
    for service in others:
        cloud.admin.compute.disable_service(service)
    try:
        server = cloud.boot(flavor=flavor)
    finally:
        for service in others:
            cloud.admin.compute.enable_service(service)
    assert cloud.host_of(server) == host
    return server


def moved_cold(cloud: CephCloud, server: Any, target: str) -> MoveMemory:
    cloud.admin.compute.migrate_server(server.id, host=target)
    cloud.wait(server, "VERIFY_RESIZE")
    cloud.settle()
    assert cloud.host_of(server) == target
    return msgspec.convert(cloud.moves(server)[-1].data, MoveMemory)


@pytest.mark.parametrize("end", ["confirm", "revert"])
def test_a_server_moves_warm(cloud: CephCloud, way: tuple[str, str], end: str) -> None:
    source, target = way
    server = booted(cloud, source)
    before = cloud.said(server)
    memory = moved_cold(cloud, server, target)
    assert memory.warm is not None and memory.warm.ended is None and memory.warm.received is not None
    # What travelled when it was off is little, and does not depend on the disk's size.
    assert (memory.bytes_of_disks or 0) < memory.warm.sent / 2
    there = cloud.said(server, after_boot=before.boot)
    assert (there.first("vda"), there.lines("vda")) == (before.first("vda"), before.lines("vda") + 1)
    if end == "confirm":
        cloud.confirmed(server)
        assert cloud.owners_of_all(server) <= {target}
    else:
        cloud.reverted(server)
        back = cloud.said(server, after_boot=before.boot)
        assert (back.first("vda"), back.lines("vda")) == (before.first("vda"), before.lines("vda") + 1)
        assert cloud.owners_of_all(server) <= {source}
    assert cloud.snapshots_of_all(server) == []
    assert cloud.audit().is_clean


def test_a_guest_moves_live(cloud: CephCloud, way: tuple[str, str]) -> None:
    source, target = way
    server = booted(cloud, source)
    before = cloud.said(server)
    assert cloud.migrated(server, host=target).compute_host == target, cloud.moves(server)[-1].error
    assert cloud.moves(server)[-1].recipe == "live_migration"
    arrived = cloud.libvirt(target).live_arrival(server.id)
    assert arrived is not None and arrived.memory_processed > 0
    assert cloud.owners_of_all(server) <= {target}
    # It did not boot meanwhile: that would be the first boot after `before`.
    cloud.member.compute.reboot_server(server.id, "HARD")
    cloud.wait(server, "ACTIVE")
    now = cloud.said(server, after_boot=before.boot)
    assert (now.boot, now.first("vda")) == (before.boot + 1, before.first("vda"))
    assert cloud.audit().is_clean


def test_a_guest_comes_back_live(cloud: CephCloud) -> None:
    server = booted(cloud, ONE)
    before = cloud.said(server)
    for target in (TWO, ONE):
        assert cloud.migrated(server, host=target).compute_host == target, cloud.moves(server)[-1].error
        assert cloud.owners_of_all(server) == {target}
    cloud.member.compute.reboot_server(server.id, "HARD")
    cloud.wait(server, "ACTIVE")
    assert cloud.said(server, after_boot=before.boot).first("vda") == before.first("vda")
