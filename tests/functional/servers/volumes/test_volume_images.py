"""Images of servers whose root disk is a volume, and servers that boot from them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.functional.servers.moves_cloud import Cloud, until
from tests.functional.servers.volumes.copies import delete_all, snapshots

# Block storage's NFS driver has the hypervisor make them.
SNAPSHOTS = "makes volumes of snapshots that a simulated guest has made"


def ask(cloud: Cloud, server: Any, version: str = "2.96", **fields: Any) -> Any:
    body = {"createImage": {"name": "copy", **fields}}
    return cloud.member.compute.post(f"/servers/{server.id}/action", json=body, microversion=version)


def image_of(cloud: Cloud, server: Any) -> Any:
    answer = ask(cloud, server)
    assert answer.status_code == 202, answer.text
    image_id = answer.json()["image_id"]
    return until(lambda: cloud.admin.image.get_image(image_id), lambda found: found.status == "active", "the image")


def mapping_of(image: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(image.properties["block_device_mapping"])
    return found


def read(cloud: Cloud, server: Any) -> list[str]:
    lines = cloud.driver(cloud.show(server).compute_host).guest_read(server.id)
    return [line for line in lines if not line.startswith("boot=")]


@pytest.fixture(autouse=True)
def nothing_left(cloud: Cloud) -> Iterator[None]:
    yield
    delete_all(cloud, snapshots)


def test_a_server_made_from_one_has_all_that_was_on_the_volumes(cloud: Cloud) -> None:
    cloud.needs_devcloud(SNAPSHOTS)
    server = cloud.boot_from_volume()
    data = cloud.volume()
    cloud.attach(server, data)
    cloud.driver(cloud.show(server).compute_host).guest_write(server.id, "mine")
    image = image_of(cloud, server)
    assert (image.size, image.properties["root_device_name"]) == (0, "/dev/vda")
    assert cloud.events(server, "createImage") == [("api_snapshot_instance", "Success")]
    assert cloud.show(server).task_state is None
    made = cloud.member.compute.create_server(
        name="second", flavor_id="gen1.small", image_id=image.id, networks=[{"uuid": cloud.network_id}]
    )
    shown = cloud.wait(made, "ACTIVE")
    # As of every server on a volume. Its own volumes, not those of the first one.
    assert not shown.image.get("id")
    volumes = {each.volume_id for each in cloud.member.compute.volume_attachments(made.id)}
    assert len(volumes) == 2 and not volumes & {
        each.volume_id for each in cloud.member.compute.volume_attachments(server.id)
    }
    assert read(cloud, made) == ["mine"]


def test_the_image_of_a_server_on_volumes_says_all_of_the_devices(cloud: Cloud) -> None:
    flavor = cloud.admin.compute.create_flavor(name="local", vcpus=1, ram=128, disk=1, ephemeral=1, swap=64)
    cloud.admin.compute.create_flavor_extra_specs(flavor, {"aggregate_instance_extra_specs:gen": "1"})
    root = {"boot_index": 0, "source_type": "image", "destination_type": "volume", "uuid": cloud.image_id,
            "volume_size": 1, "delete_on_termination": True, "tag": "system", "disk_bus": "virtio"}  # fmt: skip
    server = cloud.boot_from_volume(flavor_id=flavor.id, block_device_mapping=[root])
    cloud.attach(server, cloud.volume(), tag="data")
    mapping = mapping_of(image_of(cloud, server))
    by_tag = {each["tag"]: each for each in mapping}
    assert {tag: (each["source_type"], each["destination_type"], each["boot_index"], each["volume_size"])
            for tag, each in by_tag.items() if tag} == {
        "system": ("snapshot", "volume", 0, 1), "data": ("snapshot", "volume", None, 1),
    }  # fmt: skip
    assert by_tag["system"]["delete_on_termination"] and by_tag["system"]["disk_bus"] == "virtio"
    assert {each["snapshot_id"] for each in mapping if "snapshot_id" in each} == {each.id for each in snapshots(cloud)}
    local = [(each["guest_format"], each["volume_size"]) for each in mapping if each["destination_type"] == "local"]
    assert sorted(local, key=str) == [("swap", 64), (None, 1)]
    cloud.clean()
    cloud.admin.compute.delete_flavor(flavor)


def test_a_snapshot_that_was_made_and_nobody_heard_of_is_found(cloud: Cloud) -> None:
    server = cloud.boot_from_volume()
    cloud.attach(server, cloud.volume())
    cloud.fail("lose_reply", "/snapshots$", service="volume", method="POST", times=1)
    mapping = mapping_of(image_of(cloud, server))
    assert {each["snapshot_id"] for each in mapping} == {each.id for each in snapshots(cloud)}
    assert len(snapshots(cloud)) == 2


def test_one_that_fails_leaves_the_server_as_it_was_and_no_snapshot(cloud: Cloud) -> None:
    server = cloud.boot_from_volume()
    cloud.attach(server, cloud.volume())
    before = cloud.reality(server)
    cloud.fail("status", "/images/", service="image", method="PATCH", status=403)
    image_id = ask(cloud, server).json()["image_id"]
    until(lambda: cloud.show(server).task_state, lambda task: task is None, "the end")
    assert cloud.admin.image.find_image(image_id) is None
    until(lambda: snapshots(cloud), lambda left: not left, "the snapshots to go")
    assert cloud.reality(server) == before
    action = cloud.action(server, "createImage")
    assert "set properties of image" in action.message


def test_who_may_make_no_more_snapshots_gets_the_error_at_once(cloud: Cloud) -> None:
    server = cloud.boot_from_volume()
    project = cloud.member.current_project_id
    before = cloud.admin.block_storage.get_quota_set(project).snapshots
    cloud.admin.block_storage.update_quota_set(project, snapshots=0)
    answer = ask(cloud, server)
    cloud.admin.block_storage.update_quota_set(project, snapshots=before)
    assert answer.status_code == 403 and "Quota exceeded for snapshots" in answer.text
    assert list(cloud.admin.image.images(name="copy")) == [] and cloud.show(server).task_state is None


def test_a_guest_that_must_stand_still_for_it_is_left_alone(cloud: Cloud) -> None:
    image = cloud.admin.image.create_image(
        name="still", disk_format="raw", container_format="bare", visibility="public", data=b"0" * 4096,
        os_require_quiesce="yes", hw_qemu_guest_agent="yes",
    )  # fmt: skip
    root = {"boot_index": 0, "source_type": "image", "destination_type": "volume", "uuid": image.id, "volume_size": 1}
    server = cloud.boot_from_volume(block_device_mapping=[root | {"delete_on_termination": True}])
    answer = ask(cloud, server)
    assert answer.status_code == 409 and "os_require_quiesce" in answer.text
    cloud.member.compute.stop_server(server)
    cloud.wait(server, "SHUTOFF")
    assert ask(cloud, server).status_code == 202
    until(lambda: cloud.show(server).task_state, lambda task: task is None, "the end")
    cloud.clean()
    cloud.admin.image.delete_image(image)


def test_other_devices_of_the_same_name_count_more_than_the_image_s(cloud: Cloud) -> None:
    cloud.needs_devcloud(SNAPSHOTS)
    server = cloud.boot_from_volume()
    data = cloud.volume()
    cloud.attach(server, data, device="/dev/vdb")
    image = image_of(cloud, server)
    own = cloud.volume()
    given = [
        # Clients ask for it, whatever the image brings.
        {"boot_index": 0, "source_type": "image", "destination_type": "local", "uuid": image.id},
        {"boot_index": -1, "source_type": "volume", "destination_type": "volume", "uuid": own.id, "device_name": "/dev/vdb"},
    ]  # fmt: skip
    made = cloud.member.compute.create_server(
        name="second", flavor_id="gen1.small", image_id=image.id, networks=[{"uuid": cloud.network_id}],
        block_device_mapping=given,
    )  # fmt: skip
    cloud.wait(made, "ACTIVE")
    attached = {each.device: each.volume_id for each in cloud.member.compute.volume_attachments(made.id)}
    assert set(attached) == {"/dev/vda", "/dev/vdb"} and attached["/dev/vdb"] == own.id


def test_an_image_of_volumes_can_t_be_the_disk_of_a_server_that_is_rebuilt(cloud: Cloud) -> None:
    image = image_of(cloud, cloud.boot_from_volume())
    other = cloud.boot("other")
    answer = cloud.member.compute.post(
        f"/servers/{other.id}/action", json={"rebuild": {"imageRef": image.id}}, microversion="2.92"
    )
    assert answer.status_code == 400 and "has no data" in answer.text
