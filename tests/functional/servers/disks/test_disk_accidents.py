"""What happens to disks and images beside a move, and must not harm it. Numbers are the peer's bugs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.functional.servers.moves_cloud import Cloud

REACHES = pytest.mark.parametrize("reach", ["cross", "same"])
FLAVORS = {"cross": ("gen1.small", "gen2.small"), "same": ("any.small", "any.medium")}


def folder(cloud: Cloud, server: Any, suffix: str = "") -> Path:
    path: Path = cloud.parts.state.path / "hosts" / cloud.show(server).compute_host
    return next(path.rglob("instances")) / f"{server.id}{suffix}"


@REACHES
@pytest.mark.parametrize("end", ["confirm", "revert"])
def test_disks_that_an_earlier_move_did_not_delete_are_not_in_the_way(cloud: Cloud, reach: str, end: str) -> None:
    """Bug 1960230: every further resize failed, or an old disk would come back at a revert."""
    server = cloud.boot(flavor=FLAVORS[reach][0])
    host = cloud.show(server).compute_host
    cloud.driver(host).guest_write(server.id, "precious")
    cleanup = folder(cloud, server, "_resize")
    cleanup.mkdir()
    (cleanup / "disk").write_text("old")
    moved = cloud.resized(server, FLAVORS[reach][1])
    assert cloud.hosts_of(server) == {host: "stashed", moved.compute_host: "guest"}
    after = (cloud.confirmed if end == "confirm" else cloud.reverted)(server)
    assert "precious" in cloud.driver(after.compute_host).guest_read(server.id)
    assert cloud.hosts_of(server) == {after.compute_host: "guest"}


@REACHES
@pytest.mark.parametrize("gone", ["deleted", "private"])
def test_the_base_image_is_gone(cloud: Cloud, reach: str, gone: str) -> None:
    """Bug 1558880: the disk comes with all that is in it, and grows."""
    base = cloud.parts.state.path / "image of this test"
    base.write_bytes(b"an image")
    images = cloud.admin.image
    image = images.create_image(
        name="base", filename=str(base), disk_format="raw", container_format="bare", visibility="public"
    )
    server = cloud.boot(flavor=FLAVORS[reach][0], image_id=image.id)
    cloud.driver(cloud.show(server).compute_host).guest_write(server.id, "precious")
    if gone == "deleted":
        images.delete_image(image)
    else:
        images.update_image(image, visibility="private")
    moved = cloud.resized(server, FLAVORS[reach][1])
    driver = cloud.driver(moved.compute_host)
    assert "precious" in driver.guest_read(server.id)
    assert driver.guest_disks(server.id) == {"vda": 2048}
    cloud.confirmed(server)
    cloud.member.compute.reboot_server(server.id, "HARD")
    cloud.wait(server, "ACTIVE")
    assert "precious" in driver.guest_read(server.id)
    if gone == "private":
        images.delete_image(image)


@REACHES
@pytest.mark.parametrize("disk_config", ["AUTO", "MANUAL"])
def test_the_guest_sees_the_larger_root_disk(cloud: Cloud, reach: str, disk_config: str) -> None:
    """Whatever disk_config says, as with Nova's libvirt driver: it is about partitions, which are the guest's."""
    server = cloud.boot(flavor=FLAVORS[reach][0], disk_config="MANUAL")
    assert cloud.driver(cloud.show(server).compute_host).guest_disks(server.id) == {"vda": 1024}
    body = {"resize": {"flavorRef": FLAVORS[reach][1], "OS-DCF:diskConfig": disk_config}}
    answer = cloud.member.compute.post(f"/servers/{server.id}/action", json=body)
    assert answer.status_code == 202, answer.text
    moved = cloud.wait(server, "VERIFY_RESIZE")
    assert moved.disk_config == disk_config
    assert cloud.driver(moved.compute_host).guest_disks(server.id) == {"vda": 2048}
    after = cloud.reverted(server)
    assert cloud.driver(after.compute_host).guest_disks(server.id) == {"vda": 1024}
    # as in Nova, a revert does not undo what was asked for beside the flavor
    assert after.disk_config == disk_config


@pytest.mark.parametrize("end", ["confirm", "revert"])
def test_a_failed_start_deletes_only_what_it_made(cloud: Cloud, end: str) -> None:
    """Bug 1550919: the disks that are stashed at the source are what the server is restored from."""
    server = cloud.boot()
    host = cloud.show(server).compute_host
    cloud.driver(host).guest_write(server.id, "precious")
    before = cloud.reality(server)
    cloud.parts.devcloud.unpluggable_hosts = {"cell2-host1", "cell2-host2"}
    cloud.option("vif_plugging_timeout", 1)
    cloud.member.compute.resize_server(server.id, "gen2.small")
    cloud.failed(server)
    cloud.settle()
    assert cloud.reality(server) | {"ports": None} == before | {"ports": None}
    assert "precious" in cloud.driver(host).guest_read(server.id)
    cloud.heal()
    cloud.resized(server)
    after = (cloud.confirmed if end == "confirm" else cloud.reverted)(server)
    assert "precious" in cloud.driver(after.compute_host).guest_read(server.id)
