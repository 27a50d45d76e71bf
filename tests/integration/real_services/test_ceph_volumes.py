"""Real guests whose volumes are in a real Ceph: Cinder and Glance on RBD, QEMU's own driver on the hosts."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import libvirt
import pytest

from causeway.cli.demo.guest import GuestReport
from tests.functional.processes.own_process import until
from tests.integration.real_services import ceph
from tests.integration.real_services.ceph import Ceph
from tests.integration.real_services.ceph_services import CEPH, NFS, ON_CEPH, CephServices
from tests.integration.real_services.guests import GuestCloud, guest_cloud_here
from tests.integration.real_services.network_journeys import CELLS, ELSEWHERE, NEIGHBOUR, SOURCE
from tests.integration.real_services.test_guests_kept_running import migrate_live, steps
from tests.integration.real_services.test_main_job import volume_is
from tests.integration.real_services.test_real_guests import ended, is_whole, report

#: a type of volumes that several servers may have
SHARED = "shared"
pytestmark = [pytest.mark.timeout(900), pytest.mark.libvirt]


@pytest.fixture(scope="module")
def running() -> Iterator[GuestCloud]:
    if reason := ceph.missing():
        pytest.skip(reason)
    with guest_cloud_here(cells=CELLS, storage=(CEPH, NFS), networking=ON_CEPH) as cloud:
        for name in (CEPH, NFS):
            cloud.admin.block_storage.create_type(name=name, extra_specs={"volume_backend_name": name})
        specs = {"volume_backend_name": CEPH, "multiattach": "<is> True"}
        cloud.admin.block_storage.create_type(name=SHARED, extra_specs=specs)
        yield cloud


@pytest.fixture
def cloud(running: GuestCloud) -> Iterator[GuestCloud]:
    yield running
    running.delete_all()


def storage(cloud: GuestCloud) -> Ceph:
    assert isinstance(cloud.services, CephServices)
    return cloud.services.ceph


def volume(cloud: GuestCloud, **fields: Any) -> Any:
    made = cloud.member.block_storage.create_volume(**{"size": 1, "name": "data", "volume_type": CEPH, **fields})
    return cloud.member.block_storage.wait_for_status(made, "available", wait=120)


def with_data(cloud: GuestCloud) -> tuple[Any, Any, GuestReport]:
    """A server in the first cell whose guest has written to its disk and to a volume in Ceph."""
    data, server = volume(cloud), cloud.boot_on(SOURCE)
    cloud.admin.compute.create_volume_attachment(server, volumeId=data.id)
    volume_is(cloud, data, "in-use")
    until(lambda: report(cloud, server).lines("vdb"), lambda lines: lines == 1, "the guest to mark the volume")
    return server, data, report(cloud, server)


def disk(cloud: GuestCloud, server: Any, name: str) -> ET.Element:
    found = ET.fromstring(cloud.definition(server)).find(f"devices/disk/target[@dev='{name}']/..")
    assert found is not None
    return found


def watchers(cloud: GuestCloud, data: Any) -> int:
    """Who has the volume open for writing."""
    return storage(cloud).run("rbd", "status", f"volumes/volume-{data.id}").count("watcher=")


def goes_to(cloud: GuestCloud, server: Any, host: str) -> None:
    """Off, for good."""
    cloud.admin.compute.migrate_server(server, host=host)
    assert ended(cloud, server, "VERIFY_RESIZE").compute_host == host
    cloud.admin.compute.confirm_server_resize(server.id)
    ended(cloud, server, "ACTIVE")


def goes_live_to(cloud: GuestCloud, server: Any, host: str) -> None:
    migrate_live(cloud, server, host)
    assert ended(cloud, server, "ACTIVE").compute_host == host


def test_a_volume_goes_with_its_guest_across_cells_and_inside_one_and_is_detached(cloud: GuestCloud) -> None:
    server, data, before = with_data(cloud)
    source = disk(cloud, server, "vdb").find("source")
    assert source is not None
    assert source.get("name") == f"volumes/volume-{data.id}"

    goes_to(cloud, server, ELSEWHERE)
    now = report(cloud, server, after_boot=before.boot)
    assert (now.first("vdb"), now.lines("vdb")) == (before.first("vdb"), before.lines("vdb") + 1)
    is_whole(cloud, server, data)
    for host in (SOURCE, NEIGHBOUR):
        goes_live_to(cloud, server, host)
        is_whole(cloud, server, data)
        assert watchers(cloud, data) == 1

    cloud.admin.compute.delete_volume_attachment(server, data.id)
    volume_is(cloud, data, "available")
    assert ET.fromstring(cloud.definition(server)).find("devices/disk/target[@dev='vdb']") is None
    until(lambda: watchers(cloud, data), lambda number: number == 0, "the guest to close the volume", 60)


def raw_image(cloud: GuestCloud, folder: Path) -> Any:
    """In Ceph, where Cinder clones it."""
    raw = folder / "raw"
    subprocess.run(
        ["qemu-img", "convert", "-f", "qcow2", "-O", "raw", str(cloud.guest_image().path), str(raw)],
        check=True,
        timeout=120,
    )
    return cloud.member.image.create_image(
        name="raw", disk_format="raw", container_format="bare", filename=str(raw), wait=True, allow_duplicates=True
    )


def test_a_guest_boots_from_a_clone_of_its_image_and_moves_with_nothing_copied(
    cloud: GuestCloud, tmp_path: Path
) -> None:
    image = raw_image(cloud, tmp_path)
    root = volume(cloud, image_id=image.id, name="root")
    assert "parent: images/" in storage(cloud).run("rbd", "info", f"volumes/volume-{root.id}")
    device = {"boot_index": 0, "uuid": root.id, "source_type": "volume", "destination_type": "volume"}
    server = cloud.boot_on(SOURCE, image_id="", block_device_mapping=[device])
    before = report(cloud, server)

    cloud.admin.compute.migrate_server(server, host=ELSEWHERE)
    ended(cloud, server, "VERIFY_RESIZE")
    away = report(cloud, server, after_boot=before.boot)
    cloud.admin.compute.revert_server_resize(server.id)
    assert ended(cloud, server, "ACTIVE").compute_host == SOURCE
    back = report(cloud, server, after_boot=away.boot)
    assert (back.first("vda"), back.lines("vda")) == (before.first("vda"), before.lines("vda") + 2)
    for host in (ELSEWHERE, SOURCE):
        goes_live_to(cloud, server, host)
    assert watchers(cloud, root) == 1
    is_whole(cloud, server, root)

    is_rescued(cloud, server)
    again = report(cloud, server, after_boot=back.boot)
    assert again.first("vda") == before.first("vda")


def is_rescued(cloud: GuestCloud, server: Any) -> None:
    """And runs from its own disk again."""
    image = cloud.member.image.create_image(
        name="rescue",
        disk_format="qcow2",
        container_format="bare",
        filename=str(cloud.guest_image().path),
        wait=True,
        hw_rescue_device="disk",
        hw_rescue_bus="virtio",
    )
    body = {"rescue": {"rescue_image_ref": image.id}}
    answer = cloud.admin.compute.post(f"/servers/{server.id}/action", json=body, microversion="2.87")
    assert answer.status_code == 200, answer.text
    ended(cloud, server, "RESCUE")
    own = disk(cloud, server, "vda")
    assert (own.get("type"), own.find("boot")) == ("network", None)
    cloud.admin.compute.unrescue_server(server)
    ended(cloud, server, "ACTIVE")


def test_a_running_guest_sees_that_its_volume_is_larger_and_takes_it_along(cloud: GuestCloud) -> None:
    server, data, _before = with_data(cloud)

    body = {"os-extend": {"new_size": 2}}
    answer = cloud.member.block_storage.post(f"/volumes/{data.id}/action", json=body, microversion="3.42")
    assert answer.status_code == 202, answer.text

    until(lambda: size_in_guest(cloud, server, "vdb"), lambda size: size == 2 << 30, "the guest to see it")
    volume_is(cloud, data, "in-use")
    goes_live_to(cloud, server, ELSEWHERE)
    assert size_in_guest(cloud, server, "vdb") == 2 << 30
    is_whole(cloud, server, data)


def size_in_guest(cloud: GuestCloud, server: Any, name: str) -> int:
    """What QEMU shows it."""
    (host,) = cloud.running_on(server)
    connection = libvirt.open(cloud.machines.endpoints[host].uri)
    try:
        return int(connection.lookupByUUIDString(server.id).blockInfo(name)[0])
    finally:
        connection.close()


def test_a_server_stays_where_it_is_while_ceph_does_not_answer(cloud: GuestCloud) -> None:
    server, data, before = with_data(cloud)
    storage(cloud).freeze()
    try:
        cloud.admin.compute.migrate_server(server, host=ELSEWHERE)
        found = ended(cloud, server, "ACTIVE")
        assert found.compute_host == SOURCE
        assert "Ceph did not open image" in str(steps(cloud, server)["ReserveTarget"].error)
    finally:
        storage(cloud).thaw()
    # It was not even off.
    is_whole(cloud, server, data)
    goes_to(cloud, server, ELSEWHERE)
    now = report(cloud, server, after_boot=before.boot)
    assert now.lines("vdb") == before.lines("vdb") + 1


def test_a_guest_that_migrates_gets_the_monitors_of_now(cloud: GuestCloud) -> None:
    server, data, _before = with_data(cloud)
    assert monitors(disk(cloud, server, "vdb")) == storage(cloud).monitors
    storage(cloud).move_monitor()

    goes_live_to(cloud, server, NEIGHBOUR)

    assert monitors(disk(cloud, server, "vdb")) == storage(cloud).monitors
    is_whole(cloud, server, data)


def monitors(found: ET.Element) -> list[tuple[str | None, str | None]]:
    return [(each.get("name"), each.get("port")) for each in found.iterfind("source/host")]


def test_a_volume_goes_from_nfs_into_ceph_while_its_guest_uses_it(cloud: GuestCloud) -> None:
    data, server = volume(cloud, volume_type=NFS), cloud.boot_on(SOURCE)
    cloud.admin.compute.create_volume_attachment(server, volumeId=data.id)
    volume_is(cloud, data, "in-use")
    until(lambda: report(cloud, server).lines("vdb"), lambda lines: lines == 1, "the guest to mark the volume")
    before = report(cloud, server)

    cloud.member.block_storage.retype_volume(data, CEPH, migration_policy="on-demand")
    found = until(
        lambda: cloud.admin.block_storage.get_volume(data.id),
        lambda found: found.status == "in-use" and found.migration_status in (None, "success", "error"),
        "the volume to be where its type says",
        400,
    )
    assert found.volume_type == CEPH
    ended(cloud, server, "ACTIVE")
    source = disk(cloud, server, "vdb").find("source")
    assert source is not None and source.get("protocol") == "rbd"
    goes_to(cloud, server, ELSEWHERE)
    now = report(cloud, server, after_boot=before.boot)
    assert (now.first("vdb"), now.lines("vdb")) == (before.first("vdb"), before.lines("vdb") + 1)


def test_guests_of_two_hosts_share_a_volume(cloud: GuestCloud) -> None:
    shared = volume(cloud, volume_type=SHARED)
    first, second = cloud.boot_on(SOURCE), cloud.boot_on(NEIGHBOUR)
    for number, server in enumerate((first, second), start=1):
        cloud.admin.compute.create_volume_attachment(server, volumeId=shared.id)
        until(partial(lines_of_volume, cloud, server), number.__eq__, "the guest to mark the volume")
        assert disk(cloud, server, "vdb").find("shareable") is not None

    goes_live_to(cloud, second, ELSEWHERE)
    cloud.admin.compute.delete_volume_attachment(second, shared.id)
    until(lambda: watchers(cloud, shared), lambda number: number == 1, "one guest to close the volume", 60)
    assert disk(cloud, first, "vdb") is not None


def lines_of_volume(cloud: GuestCloud, server: Any) -> int:
    return report(cloud, server).lines("vdb")
