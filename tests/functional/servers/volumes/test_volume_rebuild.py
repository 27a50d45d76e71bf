"""Rebuilding servers whose root disk is a volume, from 2.93 on: the volume gets the image, again or another one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from causeway.operations.rebuild_volume import ReleaseRootVolume
from tests.functional.servers.moves_cloud import Cloud, until

OTHER = b"another image\n".ljust(4096, b"\0")


@pytest.fixture
def image(cloud: Cloud) -> Iterator[Any]:
    made = cloud.admin.image.create_image(
        name="other", disk_format="raw", container_format="bare", visibility="public", data=OTHER
    )
    yield made
    cloud.clean()
    if cloud.admin.image.find_image(made.id) is not None:
        cloud.admin.image.delete_image(made.id)


def rebuild(cloud: Cloud, server: Any, image_id: str, version: str = "2.93", **more: Any) -> Any:
    body = {"rebuild": {"imageRef": image_id, **more}}
    return cloud.member.compute.post(f"/servers/{server.id}/action", json=body, microversion=version)


def rebuilt(cloud: Cloud, server: Any, image_id: str, status: str = "ACTIVE") -> Any:
    answer = rebuild(cloud, server, image_id)
    assert answer.status_code == 202, answer.text
    return cloud.wait(server, status)


def write(cloud: Cloud, server: Any, text: str) -> None:
    cloud.driver(cloud.show(server).compute_host).guest_write(server.id, text)


def lines(cloud: Cloud, server: Any) -> list[str]:
    return [line for line in cloud.driver(cloud.show(server).compute_host).guest_read(server.id) if "boot=" not in line]


def root_of(cloud: Cloud, server: Any) -> Any:
    root = next(each for each in cloud.member.compute.volume_attachments(server.id) if each.device == "/dev/vda")
    return cloud.member.block_storage.get_volume(root.volume_id)


def holds_other_image(cloud: Cloud, server: Any) -> bool:
    """What the volume service has on the root volume, and the guest sees nothing of what it wrote."""
    cloud.needs_devcloud("looks at a file of the volume service")
    path = cloud.parts.state.devcloud / "volumes" / f"volume-{root_of(cloud, server).id}"
    with path.open("rb") as file:
        is_other = file.read(len(OTHER)).startswith(OTHER.rstrip(b"\0"))
    return is_other and "mine" not in lines(cloud, server)


def test_the_volume_gets_the_image_and_stays_the_server_s(cloud: Cloud, image: Any) -> None:
    server = cloud.boot_from_volume()
    cloud.attach(server, cloud.volume())
    before = {each.volume_id for each in cloud.member.compute.volume_attachments(server.id)}
    host = cloud.show(server).compute_host
    write(cloud, server, "mine")
    shown = rebuilt(cloud, server, image.id)
    assert holds_other_image(cloud, server)
    assert (shown.compute_host, shown.image.get("id")) == (host, None)
    assert {each.volume_id for each in cloud.member.compute.volume_attachments(server.id)} == before
    volume = root_of(cloud, server)
    assert (volume.status, volume.volume_image_metadata["image_id"]) == ("in-use", image.id)
    events = cloud.events(server, "rebuild")
    assert events == [("reimage_root_volume", "Success"), ("compute_rebuild_instance", "Success")]


def test_a_rebuild_writes_the_volume_from_2_93_on_only(cloud: Cloud) -> None:
    server = cloud.boot_from_volume()
    write(cloud, server, "mine")
    assert rebuild(cloud, server, cloud.image_id, "2.92").status_code == 202
    cloud.wait(server, "ACTIVE")
    assert lines(cloud, server)[-1] == "mine"
    rebuilt(cloud, server, cloud.image_id)
    assert "mine" not in lines(cloud, server)


def test_one_that_was_off_stays_off(cloud: Cloud, image: Any) -> None:
    server = cloud.boot_from_volume()
    cloud.member.compute.stop_server(server)
    cloud.wait(server, "SHUTOFF")
    rebuilt(cloud, server, image.id, "SHUTOFF")
    cloud.member.compute.start_server(server)
    cloud.wait(server, "ACTIVE")
    assert holds_other_image(cloud, server)


def test_an_image_that_went_meanwhile_costs_nothing(cloud: Cloud, image: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    server = cloud.boot_from_volume()
    write(cloud, server, "mine")
    before = cloud.reality(server)
    begin = ReleaseRootVolume.do

    def late(step: ReleaseRootVolume, run: Any) -> None:
        cloud.admin.image.delete_image(image)
        begin(step, run)

    monkeypatch.setattr(ReleaseRootVolume, "do", late)
    assert rebuild(cloud, server, image.id).status_code == 202
    until(lambda: cloud.show(server).task_state, lambda task: task is None, "the end")
    assert cloud.show(server).status == "ACTIVE"
    assert cloud.reality(server) == before and lines(cloud, server)[-1] == "mine"


def test_one_whose_image_could_not_be_written_is_in_error_and_can_be_rebuilt_again(cloud: Cloud, image: Any) -> None:
    server = cloud.boot_from_volume()
    cloud.fail("status", "/volumes/.*/action$", service="volume", method="POST", status=400, times=1)
    assert rebuild(cloud, server, image.id).status_code == 202
    shown = cloud.wait(server, "ERROR")
    assert "write image" in shown.fault["message"]
    rebuilt(cloud, server, image.id)
    assert holds_other_image(cloud, server)


def test_what_can_t_be_is_refused(cloud: Cloud) -> None:
    server = cloud.boot_from_volume()
    large = cloud.admin.image.create_image(
        name="large", disk_format="raw", container_format="bare", visibility="public", data=OTHER, min_disk=1000
    )
    answer = rebuild(cloud, server, large.id)
    assert (answer.status_code == 400 and "Flavor" in answer.text) or "Volume is smaller" in answer.text
    answer = rebuild(cloud, server, cloud.image_id, trusted_image_certificates=["one"])
    assert answer.status_code in (400, 403)
    assert cloud.show(server).status == "ACTIVE"
    cloud.admin.image.delete_image(large)
