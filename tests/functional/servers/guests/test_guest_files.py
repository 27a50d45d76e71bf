"""Config drive, user data, metadata and personality files: a guest has them after every move."""

from __future__ import annotations

import base64
from typing import Any

import msgspec
import pytest

from tests.functional.servers.moves_cloud import Cloud

MOTD = b"hello\n"
USER_DATA = b"#!/bin/sh\necho hello\n"
REACHES = pytest.mark.parametrize("reach", ["cross", "same"])
BACKINGS = pytest.mark.parametrize("backing", ["image", "volume"])
FLAVORS = {"cross": ("gen1.small", "gen2.small"), "same": ("any.small", "any.medium")}


def boot(cloud: Cloud, flavor: str, backing: str) -> Any:
    """A server with all of it. Personality files were accepted before 2.57."""
    root = {
        "source_type": "image",
        "destination_type": "volume",
        "uuid": cloud.image_id,
        "boot_index": 0,
        "volume_size": 1,
        "delete_on_termination": True,
    }
    body = {
        "name": "server",
        "flavorRef": flavor,
        "networks": [{"uuid": cloud.network_id}],
        "config_drive": True,
        "metadata": {"purpose": "test"},
        "user_data": base64.b64encode(USER_DATA).decode(),
        "personality": [{"path": "/etc/motd", "contents": base64.b64encode(MOTD).decode()}],
        **({"imageRef": cloud.image_id} if backing == "image" else {"block_device_mapping_v2": [root]}),
    }
    answer = cloud.member.compute.post("/servers", json={"server": body}, microversion="2.56")
    assert answer.status_code == 202, answer.text
    server = cloud.member.compute.get_server(answer.json()["server"]["id"])
    return cloud.wait(server, "ACTIVE")


def files(cloud: Cloud, server: Any) -> dict[str, bytes]:
    """The config drive of the guest where it is."""
    driver = cloud.driver(cloud.show(server).compute_host)
    content = (driver.files.disks(server.id) / "disk.config").read_bytes()
    return msgspec.json.decode(content, type=dict[str, bytes])


def assert_all_there(cloud: Cloud, server: Any, **metadata: str) -> None:
    found = files(cloud, server)
    about = msgspec.json.decode(found["openstack/latest/meta_data.json"])
    assert about["meta"] == {"purpose": "test", **metadata}
    assert found["openstack/latest/user_data"] == USER_DATA
    ((path, content_path),) = [(each["path"], each["content_path"]) for each in about["files"]]
    assert path == "/etc/motd"
    assert found[f"openstack{content_path}"] == MOTD
    assert cloud.show(server).has_config_drive == "True"


@BACKINGS
@REACHES
@pytest.mark.parametrize("end", ["confirm", "revert"])
def test_guest_files_survive_a_resize(cloud: Cloud, backing: str, reach: str, end: str) -> None:
    server = boot(cloud, FLAVORS[reach][0], backing)
    assert_all_there(cloud, server)
    cloud.member.compute.set_server_metadata(server.id, changed="before the move")
    cloud.resized(server, FLAVORS[reach][1])
    assert_all_there(cloud, server, changed="before the move")
    (cloud.confirmed if end == "confirm" else cloud.reverted)(server)
    assert_all_there(cloud, server, changed="before the move")
    # And at every later start.
    cloud.member.compute.reboot_server(server.id, "HARD")
    cloud.wait(server, "ACTIVE")
    assert_all_there(cloud, server, changed="before the move")


@REACHES
def test_guest_files_survive_a_cold_migration_and_a_move_that_failed(cloud: Cloud, reach: str) -> None:
    server = boot(cloud, "any.small", "image")
    host = cloud.show(server).compute_host
    cell, number = int(host[4]), int(host[-1])
    target = f"cell{3 - cell if reach == 'cross' else cell}-host{3 - number}"
    cloud.without_patience()
    cloud.fail("status", "/bindings$", method="POST", service="network", times=20)
    cloud.admin.compute.migrate_server(server.id, host=target)
    cloud.failed(server)
    assert_all_there(cloud, server)
    cloud.heal()
    cloud.admin.compute.migrate_server(server.id, host=target)
    cloud.wait(server, "VERIFY_RESIZE")
    assert_all_there(cloud, server)
    cloud.confirmed(server)
    assert_all_there(cloud, server)
