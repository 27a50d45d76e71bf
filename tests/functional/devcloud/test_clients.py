"""OpenStack's own clients work, unmodified, on devcloud: openstacksdk for the breadth, `openstack` for the main commands."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import openstack
import pytest


def test_administrators_see_accounts_and_catalog(admin: Any) -> None:
    assert {"admin", "demo", "other", "service"} <= {project.name for project in admin.identity.projects()}
    assert {"admin", "demo", "causeway", "neutron", "placement"} <= {user.name for user in admin.identity.users()}
    types = {service.type for service in admin.identity.services()}
    assert {"identity", "compute", "placement", "image", "network", "volumev3", "block-storage"} <= types
    assert admin.identity.find_role("manager")


def test_an_administrator_makes_an_account_that_can_log_in(admin: Any, shared: Any) -> None:
    project = admin.identity.create_project(name="fresh")
    user = admin.identity.create_user(name="fresh", password="a-password", default_project_id=project.id)
    role = admin.identity.find_role("member")
    admin.identity.assign_project_role_to_user(project, user, role)
    auth = {"user": {"name": "fresh", "domain": {"id": "default"}, "password": "a-password"}}
    body = {"auth": {"identity": {"methods": ["password"], "password": auth}}}
    token = shared.http.post(f"{shared.url}/identity/v3/auth/tokens", json=body, timeout=20).json()["token"]
    assert [each["name"] for each in token["roles"]] == ["member", "reader"]
    assert token["project"]["name"] == "fresh"


def test_image_upload_and_download_keep_every_byte(demo: Any) -> None:
    data = os.urandom(3 << 20)
    image = demo.create_image("bytes", data=data, disk_format="raw", container_format="bare", wait=True, timeout=20)
    image = demo.image.get_image(image.id)
    assert (image.status, image.size, image.virtual_size) == ("active", len(data), len(data))
    assert image.hash_value == hashlib.sha512(data).hexdigest()
    assert demo.image.download_image(image).content == data
    demo.image.update_image(image, name="renamed", hw_disk_bus="virtio")
    assert demo.image.find_image("renamed").hw_disk_bus == "virtio"
    demo.image.delete_image(image)
    assert demo.image.find_image("renamed") is None


def test_networks_subnets_and_ports_work_with_the_sdk(demo: Any) -> None:
    network = demo.network.create_network(name="sdk-net")
    subnet = demo.network.create_subnet(network_id=network.id, ip_version=4, cidr="10.20.0.0/24")
    assert subnet.gateway_ip == "10.20.0.1"
    first = demo.network.create_port(network_id=network.id, name="first")
    second = demo.network.create_port(network_id=network.id, fixed_ips=[{"ip_address": "10.20.0.77"}])
    assert first.fixed_ips[0]["ip_address"] == "10.20.0.2"
    assert first.mac_address.startswith("fa:16:3e:")
    assert second.fixed_ips == [{"subnet_id": subnet.id, "ip_address": "10.20.0.77"}]
    assert [port.id for port in demo.network.ports(fixed_ips="ip_address=10.20.0.77")] == [second.id]
    assert demo.network.find_security_group("default")
    with pytest.raises(openstack.exceptions.ConflictException):
        demo.network.delete_network(network)
    for port in (first, second):
        demo.network.delete_port(port)
    demo.network.delete_network(network)


def test_volumes_and_snapshots_work_with_the_sdk(demo: Any) -> None:
    storage = demo.block_storage
    volume = storage.wait_for_status(storage.create_volume(name="v", size=1), interval=0.05, wait=20)
    snapshot = storage.create_snapshot(volume_id=volume.id, name="s")
    snapshot = storage.wait_for_status(snapshot, interval=0.05, wait=20)
    copy = storage.wait_for_status(storage.create_volume(size=2, snapshot_id=snapshot.id), interval=0.05, wait=20)
    assert (copy.status, copy.size, copy.snapshot_id) == ("available", 2, snapshot.id)
    storage.delete_snapshot(snapshot)
    for each in (volume, copy):
        storage.delete_volume(each)
    assert storage.find_volume("v") is None


@pytest.mark.long
def test_main_commands_of_the_openstack_client_work(shared: Any, tmp_path: Path) -> None:
    content = os.urandom(100_000)
    (tmp_path / "in.img").write_bytes(content)

    def run(*arguments: str) -> Any:
        return json.loads(shared.cli("demo", *arguments, "-f", "json"))

    upload = ("--disk-format", "raw", "--container-format", "bare", "--file", str(tmp_path / "in.img"))
    image = run("image", "create", "cli-image", *upload)
    shared.cli("demo", "image", "set", "--property", "hw_vif_model=virtio", "cli-image")
    assert run("image", "show", "cli-image")["properties"]["hw_vif_model"] == "virtio"
    assert [row["Status"] for row in run("image", "list", "--name", "cli-image")] == ["active"]
    shared.cli("demo", "image", "save", "--file", str(tmp_path / "out.img"), "cli-image")
    assert (tmp_path / "out.img").read_bytes() == content
    assert run("network", "create", "cli-net")["status"] == "ACTIVE"
    subnet = run("subnet", "create", "--network", "cli-net", "--subnet-range", "10.30.0.0/24", "cli-subnet")
    assert subnet["allocation_pools"] == [{"start": "10.30.0.2", "end": "10.30.0.254"}]
    port = run("port", "create", "--network", "cli-net", "cli-port")
    assert [row["ID"] for row in run("port", "list", "--network", "cli-net")] == [port["id"]]
    assert run("volume", "create", "--image", image["id"], "--size", "1", "--bootable", "cli-volume")["size"] == 1
    assert [row["Name"] for row in run("volume", "list")] == ["cli-volume"]
    assert {row["Type"] for row in run("catalog", "list")} >= {"image", "network", "compute", "placement"}
    shared.cli("demo", "image", "delete", "cli-image")
    assert json.loads(shared.cli("admin", "user", "list", "-f", "json"))
