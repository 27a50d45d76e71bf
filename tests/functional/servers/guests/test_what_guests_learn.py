"""The metadata service of a whole cloud: what a guest reads follows its server wherever it moves; its drive has the same."""

from __future__ import annotations

import base64
import json
import stat
from typing import Any

import msgspec
import pytest
import requests

from causeway.metadata.callers import sign
from tests.functional.servers.moves_cloud import Cloud, until

CLOUD = {"overrides": {"api": {"metadata_cache_expiration": 0}}}
pytestmark = pytest.mark.embedded("asks the metadata service of the process, with its secret")
USER_DATA = b"#cloud-config\n"
TIMEOUT = 30


def ask(cloud: Cloud, server: Any, path: str, *, method: str = "GET", body: bytes | None = None) -> requests.Response:
    """As the metadata agent of the network service does for the guest."""
    headers = {
        "X-Instance-ID": server.id,
        "X-Tenant-ID": cloud.member.current_project_id,
        "X-Instance-ID-Signature": sign(cloud.embedded.state.metadata_secret(), server.id),
    }
    url = f"{cloud.embedded.url}/metadata{path}"
    return requests.request(method, url, headers=headers, data=body, timeout=TIMEOUT)


def read(cloud: Cloud, server: Any, path: str) -> str:
    answer = ask(cloud, server, path)
    assert answer.status_code == 200, answer.text
    return answer.text


def meta_data(cloud: Cloud, server: Any) -> dict[str, Any]:
    reported: dict[str, Any] = json.loads(read(cloud, server, "/openstack/latest/meta_data.json"))
    reported.pop("random_seed")
    return reported


def drive(cloud: Cloud, server: Any) -> dict[str, bytes]:
    driver = cloud.driver(cloud.show(server).compute_host)
    content = (driver.files.disks(server.id) / "disk.config").read_bytes()
    return msgspec.json.decode(content, type=dict[str, bytes])


def assert_drive_has_the_same(cloud: Cloud, server: Any) -> None:
    found = drive(cloud, server)
    assert {path.split("/")[0] for path in found} == {"openstack", "ec2"}
    for path, content in found.items():
        if path.startswith("ec2/"):
            continue
        reported = ask(cloud, server, f"/{path}").content
        if path.endswith(".json"):
            mine, theirs = json.loads(content), json.loads(reported)
            if path.endswith("meta_data.json"):
                mine.pop("random_seed", None), theirs.pop("random_seed", None)
                # Only the drive has it.
                mine.pop("admin_pass", None)
            assert mine == theirs, path
        else:
            assert content == reported, path


def boot(cloud: Cloud, **fields: Any) -> Any:
    return cloud.boot(
        config_drive=True,
        metadata={"purpose": "test"},
        user_data=base64.b64encode(USER_DATA).decode(),
        networks=[{"uuid": cloud.network_id, "tag": "front"}],
        **fields,
    )


def test_the_secret_is_the_owners_alone(cloud: Cloud) -> None:
    path = cloud.embedded.state.path / "metadata-secret"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    server = cloud.boot()
    url = f"{cloud.embedded.url}/metadata/openstack/latest/meta_data.json"
    claims = {"X-Instance-ID": server.id, "X-Tenant-ID": cloud.member.current_project_id}
    assert requests.get(url, headers=claims, timeout=TIMEOUT).status_code == 403


def test_a_new_guest_reads_what_its_drive_has(cloud: Cloud) -> None:
    # Before 2.92 the service makes one.
    made = cloud.member.compute.post("/os-keypairs", json={"keypair": {"name": "mine"}}, microversion="2.90")
    key = made.json()["keypair"]["public_key"]
    server = boot(cloud, name="web", key_name="mine")
    reported = meta_data(cloud, server)
    assert (reported["uuid"], reported["name"], reported["hostname"]) == (server.id, "web", "web.novalocal")
    assert reported["public_keys"] == {"mine": key}
    port = next(iter(cloud.member.network.ports(device_id=server.id)))
    assert reported["devices"] == [{"type": "nic", "mac": port.mac_address, "tags": ["front"]}]
    network = json.loads(read(cloud, server, "/openstack/latest/network_data.json"))
    assert network["links"][0]["ethernet_mac_address"] == port.mac_address
    assert [each["type"] for each in network["networks"]] == ["ipv4_dhcp"]
    assert read(cloud, server, "/latest/meta-data/local-ipv4") == port.fixed_ips[0]["ip_address"]
    assert read(cloud, server, "/openstack/latest/user_data").encode() == USER_DATA
    assert_drive_has_the_same(cloud, server)


@pytest.mark.parametrize("end", ["confirm", "revert"])
def test_metadata_follows_a_resize_to_the_other_cell(cloud: Cloud, end: str) -> None:
    server = boot(cloud)
    before = meta_data(cloud, server)
    old, new = (cloud.admin.compute.find_flavor(name).name for name in ("gen1.small", "gen2.small"))
    assert read(cloud, server, "/latest/meta-data/instance-type") == old
    instance_id = read(cloud, server, "/latest/meta-data/instance-id")

    cloud.resized(server)
    assert meta_data(cloud, server) == before
    assert read(cloud, server, "/latest/meta-data/instance-type") == new

    (cloud.confirmed if end == "confirm" else cloud.reverted)(server)
    cloud.member.compute.set_server_metadata(server.id, moved="yes")
    assert meta_data(cloud, server) == before | {"meta": {"purpose": "test", "moved": "yes"}}
    assert read(cloud, server, "/latest/meta-data/instance-type") == (new if end == "confirm" else old)
    # By it cloud-init shows whether it is on a server that it knows.
    assert read(cloud, server, "/latest/meta-data/instance-id") == instance_id
    cloud.member.compute.reboot_server(server.id, "HARD")
    cloud.wait(server, "ACTIVE")
    assert_drive_has_the_same(cloud, server)


def test_metadata_follows_devices_that_are_attached_and_moved(cloud: Cloud) -> None:
    server = boot(cloud)
    nics = meta_data(cloud, server)["devices"]
    volume = cloud.volume()
    cloud.attach(server, volume, tag="data")
    disk = {"type": "disk", "path": "/dev/vdb", "serial": volume.id, "tags": ["data"]}
    assert meta_data(cloud, server)["devices"] == [*nics, disk]
    assert read(cloud, server, "/latest/meta-data/block-device-mapping/ebs0") == "/dev/vdb"

    interface = {"net_id": cloud.network_id, "tag": "back"}
    answer = cloud.member.compute.post(
        f"/servers/{server.id}/os-interface", json={"interfaceAttachment": interface}, microversion="2.96"
    )
    assert answer.status_code == 200, answer.text
    second = {"type": "nic", "mac": answer.json()["interfaceAttachment"]["mac_addr"], "tags": ["back"]}
    assert meta_data(cloud, server)["devices"] == [*nics, second, disk]

    cloud.resized(server)
    assert meta_data(cloud, server)["devices"] == [*nics, second, disk]
    cloud.confirmed(server)
    assert meta_data(cloud, server)["devices"] == [*nics, second, disk]
    assert_drive_has_the_same(cloud, server)
    cloud.detach(server, volume)
    assert meta_data(cloud, server)["devices"] == [*nics, second]


def test_a_deleted_server_gets_nothing(cloud: Cloud) -> None:
    server = boot(cloud)
    assert ask(cloud, server, "/openstack/latest/meta_data.json").status_code == 200
    cloud.member.compute.delete_server(server.id)
    cloud.member.compute.wait_for_delete(server)
    for path in ("/openstack/latest/meta_data.json", "/latest/meta-data", "/openstack/latest/password"):
        assert ask(cloud, server, path).status_code == 404


def test_a_posted_password_moves_with_its_server(cloud: Cloud) -> None:
    server = boot(cloud)
    assert ask(cloud, server, "/openstack/latest/password", method="POST", body=b"Y2lwaGVy").status_code == 200
    cloud.resized(server)
    cloud.confirmed(server)
    assert read(cloud, server, "/openstack/latest/password") == "Y2lwaGVy"
    assert cloud.member.compute.get(f"/servers/{server.id}/os-server-password").json() == {"password": "Y2lwaGVy"}
    assert ask(cloud, server, "/openstack/latest/password", method="POST", body=b"YW5vdGhlcg==").status_code == 409
    assert cloud.member.compute.delete(f"/servers/{server.id}/os-server-password").status_code == 204
    assert read(cloud, server, "/openstack/latest/password") == ""


def test_a_guest_that_asks_directly_is_known_by_its_address(cloud: Cloud) -> None:
    server = boot(cloud)
    port = next(iter(cloud.member.network.ports(device_id=server.id)))
    cloud.option("service_metadata_proxy", False, "neutron")
    cloud.option("use_forwarded_for", True, "api")
    url = f"{cloud.embedded.url}/metadata/openstack/latest/meta_data.json"

    def by(address: str) -> requests.Response:
        return requests.get(url, headers={"X-Forwarded-For": address}, timeout=TIMEOUT)

    address = port.fixed_ips[0]["ip_address"]
    assert by(address).json()["uuid"] == server.id
    assert by("203.0.113.1").status_code == 404
    cloud.member.compute.delete_server(server.id)
    until(lambda: by(address).status_code, lambda status: status == 404, "the deleted server to get nothing")
