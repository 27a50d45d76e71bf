"""What guests read, by version: the OpenStack files, the EC2 tree; and that config drives have the same."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from causeway.guest_data import config_drive, ec2, versions
from causeway.guest_data.facts import ServerFacts
from causeway.model.block_device import BlockDevice
from causeway.model.instance import InjectedFile, Instance, KeyPair
from causeway.model.network import FixedIp, Vif
from causeway.model.numa import InstanceNUMACell, InstanceNUMATopology
from causeway.store.api import mappings
from causeway.store.cell import block_devices, instances
from causeway.store.database import statements
from tests.functional.conftest import Cloud
from tests.functional.metadata.conftest import Guests, signed

UUID = "11111111-2222-4333-8444-555555555555"
IMAGE = "aaaaaaaa-0000-4000-8000-00000000abcd"
USER_DATA = b"#!/bin/sh\necho hello\n"
KEY = "ssh-ed25519 AAAA user@home"


@pytest.fixture
def server(cloud: Cloud) -> Instance:
    """One that has everything."""
    address = FixedIp(
        "10.0.0.5", "sub", 4, "10.0.0.0/24", "10.0.0.1", dns=["192.0.2.53"], floating_ips=["192.0.2.9"], dhcp=True
    )
    made = cloud.server(
        uuid=UUID,
        display_name="web 1",
        hostname="web-1",
        reservation_id="r-abcdefgh",
        launch_index=2,
        availability_zone="nova",
        image_ref=IMAGE,
        metadata={"purpose": "test"},
        user_data=base64.b64encode(USER_DATA).decode(),
        config_drive=True,
        injected_files=[InjectedFile("/etc/motd", base64.b64encode(b"hello\n").decode())],
        key_name="mine",
        keypairs=[KeyPair("mine", "user", KEY, "aa:bb")],
        numa_topology=InstanceNUMATopology([InstanceNUMACell(0, [0, 3], [1, 2], 512)]),
        security_groups=["asked for"],
        network_info=[
            Vif(
                id="aaaaaaaa-0000-4000-8000-000000000000",
                address="fa:16:3e:00:00:01",
                network_id="net",
                fixed_ips=[address],
                vif_type="ovs",
                tag="front",
                security_groups=["web", "default"],
            )
        ],
    )
    with cloud.cell("cell1").write() as connection:
        block_devices.insert(connection, devices())
    return made


def devices() -> list[BlockDevice]:
    return [
        BlockDevice("d0", UUID, "image", "local", boot_index=0, device_name="/dev/vda"),
        BlockDevice("d1", UUID, "blank", "local", device_name="/dev/vdb"),
        BlockDevice("d2", UUID, "blank", "local", device_name="/dev/vdc", guest_format="swap"),
        BlockDevice("d3", UUID, "volume", "volume", device_name="/dev/vdd", volume_id="volume-1", tag="data"),
    ]


# --- OpenStack


def test_the_versions_of_openstack_files_are_listed(server: Instance, guests: Guests) -> None:
    assert guests.get(server, "/openstack").text.splitlines() == [
        *("2012-08-10", "2013-04-04", "2013-10-17", "2015-10-15", "2016-06-30", "2016-10-06", "2017-02-22"),
        *("2018-08-27", "2020-10-14", "2025-04-04", "latest"),
    ]


@pytest.mark.parametrize(
    ("version", "files"),
    [
        ("2012-08-10", "meta_data.json user_data"),
        ("2013-04-04", "meta_data.json user_data password"),
        ("2013-10-17", "meta_data.json user_data password vendor_data.json"),
        ("2015-10-15", "meta_data.json user_data password vendor_data.json network_data.json"),
        ("latest", "meta_data.json user_data password vendor_data.json network_data.json vendor_data2.json"),
    ],
)
def test_each_version_has_its_files(server: Instance, guests: Guests, version: str, files: str) -> None:
    for path in (f"/openstack/{version}", f"/openstack/{version}/", f"//openstack//{version}"):
        assert guests.get(server, path).text.split() == files.split()
    later = set(versions.FILES) - set(files.split())
    for name in files.split():
        assert guests.get(server, f"/openstack/{version}/{name}").status_code == 200
    for name in (*later, "nothing"):
        assert guests.get(server, f"/openstack/{version}/{name}").status_code == 404


def test_meta_data_has_what_is_known_of_the_server(server: Instance, guests: Guests) -> None:
    answer = guests.get(server, "/openstack/latest/meta_data.json")
    assert answer.headers["content-type"] == "application/json"
    reported = answer.json
    assert len(base64.b64decode(reported.pop("random_seed"))) == 512
    assert reported == {
        "uuid": UUID,
        "name": "web 1",
        "hostname": "web-1.novalocal",
        "launch_index": 2,
        "availability_zone": "nova",
        "project_id": "project",
        "meta": {"purpose": "test"},
        "public_keys": {"mine": KEY},
        "keys": [{"name": "mine", "type": "ssh", "data": KEY}],
        "files": [{"path": "/etc/motd", "content_path": "/content/0000"}],
        "devices": [
            {"type": "nic", "mac": "fa:16:3e:00:00:01", "tags": ["front"]},
            {"type": "disk", "path": "/dev/vdd", "serial": "volume-1", "tags": ["data"]},
        ],
        "dedicated_cpus": [1, 2],
    }
    assert guests.get(server, "/openstack/latest/user_data").content == USER_DATA
    assert guests.get(server, "/openstack/content/0000").content == b"hello\n"
    assert guests.get(server, "/openstack/content/0001").status_code == 404


@pytest.mark.parametrize(
    ("version", "missing"),
    [
        ("2012-08-10", {"random_seed", "project_id", "devices", "dedicated_cpus"}),
        ("2013-10-17", {"project_id", "devices", "dedicated_cpus"}),
        ("2015-10-15", {"devices", "dedicated_cpus"}),
        ("2016-06-30", {"dedicated_cpus"}),
        ("2020-10-14", set()),
    ],
)
def test_meta_data_of_earlier_versions_has_less(
    server: Instance, guests: Guests, version: str, missing: set[str]
) -> None:
    latest = guests.get(server, "/openstack/latest/meta_data.json").json
    reported = guests.get(server, f"/openstack/{version}/meta_data.json").json
    assert latest.keys() - reported.keys() == missing


def test_a_plain_server_has_no_empty_keys(cloud: Cloud, guests: Guests) -> None:
    plain = cloud.server(hostname="plain")
    reported = guests.get(plain, "/openstack/latest/meta_data.json").json
    assert not {"meta", "files", "public_keys", "keys"} & reported.keys()
    assert (reported["devices"], reported["dedicated_cpus"]) == ([], [])
    assert guests.get(plain, "/openstack/latest/user_data").status_code == 404
    assert "user_data" not in guests.get(plain, "/openstack/latest").text.split()
    assert guests.get(plain, "/latest/user-data").status_code == 404
    assert guests.get(plain, "/latest/meta-data/public-keys").status_code == 404
    assert guests.get(plain, "/latest/meta-data/local-ipv4").text == ""


def test_host_names_have_the_configured_domain(cloud: Cloud, server: Instance, guests: Guests) -> None:
    cloud.option("api", "dhcp_domain", "")
    assert guests.get(server, "/openstack/latest/meta_data.json").json["hostname"] == "web-1"
    cloud.option("api", "dhcp_domain", "cloud.example")
    assert guests.get(server, "/latest/meta-data/hostname").text == "web-1.cloud.example"


# --- EC2


def test_the_ec2_tree_has_what_is_known_of_the_server(server: Instance, guests: Guests) -> None:
    assert walk(guests, server, "/latest/meta-data") == {
        "/ami-id": "ami-aaaaaaaa00004000800000000000abcd",
        "/ami-launch-index": "2",
        "/ami-manifest-path": "FIXME",
        "/block-device-mapping/ami": "vda",
        "/block-device-mapping/ebs0": "/dev/vdd",
        "/block-device-mapping/ephemeral0": "/dev/vdb",
        "/block-device-mapping/root": "/dev/vda",
        "/block-device-mapping/swap": "/dev/vdc",
        "/hostname": "web-1.novalocal",
        "/instance-action": "none",
        "/instance-id": "i-11111111222243338444555555555555",
        "/instance-type": "m1.tiny",
        "/local-hostname": "web-1.novalocal",
        "/local-ipv4": "10.0.0.5",
        "/placement/availability-zone": "nova",
        "/public-hostname": "web-1.novalocal",
        "/public-ipv4": "192.0.2.9",
        "/public-keys/0/openssh-key": KEY,
        "/reservation-id": "r-abcdefgh",
        "/security-groups": "web\ndefault",
    }
    assert guests.get(server, "/latest").text == "meta-data/\nuser-data"
    assert guests.get(server, "/latest/meta-data/public-keys/").text == "0=mine"
    assert guests.get(server, "/latest/user-data").content == USER_DATA


@pytest.mark.parametrize(
    ("version", "missing"),
    [
        (
            "1.0",
            "local-hostname public-hostname public-ipv4 instance-type block-device-mapping/ placement/ instance-action",
        ),
        ("2007-01-19", "instance-type block-device-mapping/ placement/ instance-action"),
        ("2007-08-29", "block-device-mapping/ placement/ instance-action"),
        ("2007-12-15", "placement/ instance-action"),
        ("2008-02-01", "instance-action"),
        ("2009-04-04", ""),
    ],
)
def test_each_ec2_version_has_its_fields(server: Instance, guests: Guests, version: str, missing: str) -> None:
    latest = set(guests.get(server, "/ec2/latest/meta-data/").text.split("\n"))
    assert latest - set(guests.get(server, f"/{version}/meta-data/").text.split("\n")) == set(missing.split())


@pytest.mark.parametrize(
    "path",
    [
        *("/openstack/2019-01-01", "/openstack/2019-01-01/meta_data.json", "/openstack/latest/meta_data.json/uuid"),
        *("/2010-01-01", "/latest/nothing", "/latest/meta-data/hostname/more", "/latest/meta-data/public-keys/0/_name"),
        *("/openstack/1.0", "/ec2/2012-08-10", "/latest/meta-data/public-keys/1"),
    ],
)
def test_paths_that_are_not_there(server: Instance, guests: Guests, path: str) -> None:
    assert guests.get(server, path).status_code == 404


@pytest.mark.parametrize("method", ["PUT", "DELETE", "POST"])
@pytest.mark.parametrize("path", ["/openstack/latest/meta_data.json", "/latest/meta-data", "/"])
def test_guests_can_only_read_metadata(server: Instance, guests: Guests, path: str, method: str) -> None:
    answer = guests.ask(method, path, headers=signed(server))
    # Never 405: the agent passes none on.
    assert (answer.status_code, answer.text) == (400, "GET only.")


def test_user_data_may_be_any_bytes(cloud: Cloud, guests: Guests) -> None:
    """The agent reads an answer as text by what its header says, and writes that again."""
    for data in (bytes(range(256)), "Grüße".encode(), b"\x1f\x8b\x08 packed"):
        server = cloud.server(user_data=base64.b64encode(data).decode())
        for path in ("/openstack/latest/user_data", "/latest/user-data"):
            answer = guests.get(server, path)
            charset = answer.headers["content-type"].partition("charset=")[2]
            assert answer.content.decode(charset).encode(charset) == data


def test_a_head_is_a_get_without_a_body(server: Instance, guests: Guests) -> None:
    answer = guests.ask("HEAD", "/openstack/latest/meta_data.json", headers=signed(server))
    assert (answer.status_code, answer.content) == (200, b"")


def walk(guests: Guests, server: Instance, root: str, path: str = "") -> dict[str, str]:
    """path -> value of everything below, as cloud-init reads it: a name with a slash or an equals sign is a folder."""
    found: dict[str, str] = {}
    for entry in guests.get(server, root + path + "/").text.split("\n"):
        name, _is, _label = entry.partition("=")
        if entry.endswith("/") or "=" in entry:
            found |= walk(guests, server, root, f"{path}/{name.rstrip('/')}")
        else:
            found[f"{path}/{entry}"] = guests.get(server, f"{root}{path}/{entry}").text
    return found


# --- one place for both


def test_a_config_drive_has_the_same(cloud: Cloud, server: Instance, guests: Guests) -> None:
    instance = instances.get(cloud.cell("cell1"), UUID)
    drive = config_drive.files(ServerFacts(instance, instance.network_info, devices(), "novalocal"))
    for path, content in drive.items():
        if path.startswith("ec2/"):
            continue
        assert same(guests.get(server, f"/{path}").content) == same(content), path
    for version in ("2009-04-04", "latest"):
        reported = json.loads(drive[f"ec2/{version}/meta-data.json"])
        assert (
            reported
            == ec2.tree(ServerFacts(instance, instance.network_info, devices(), "novalocal"), "2009-04-04")["meta-data"]
        )
        assert drive[f"ec2/{version}/user-data"] == USER_DATA
    listed = {
        f"openstack/{version}/{name}"
        for version in guests.get(server, "/openstack").text.split()
        for name in guests.get(server, f"/openstack/{version}").text.split()
    }
    # The password is what a guest writes: a drive has none.
    assert {path for path in listed if not path.endswith("/password")} == {
        path for path in drive if path.startswith("openstack/") and "/content/" not in path
    }


def same(content: bytes) -> Any:
    """Without what is never the same twice."""
    try:
        value = json.loads(content)
    except ValueError:
        return content
    value.pop("random_seed", None)
    return value


# --- what it costs, and how old it may be


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """The statements of the block, by database."""
    before, sent = statements.snapshot(), Counter[str]()
    yield sent
    sent.update(statements.snapshot() - before)


def test_metadata_costs_three_statements_and_less_with_a_cache(cloud: Cloud, server: Instance, guests: Guests) -> None:
    guests.get(server, "/openstack/latest/meta_data.json")
    with counted() as sent:
        guests.get(server, "/openstack/latest/meta_data.json")
    # The mapping, the server, its block devices.
    assert sent == {"api": 1, "cell1": 2}

    cloud.option("api", "metadata_cache_expiration", 600)
    guests.get(server, "/openstack/latest/meta_data.json")
    with counted() as sent:
        for path in ("/openstack/latest/meta_data.json", "/openstack/latest/user_data", "/latest/meta-data/hostname"):
            guests.get(server, path)
    # The mapping of each.
    assert sent == {"api": 3}


def test_what_is_remembered_is_discarded_with_the_servers_place(cloud: Cloud, server: Instance, guests: Guests) -> None:
    cloud.option("api", "metadata_cache_expiration", 600)
    assert guests.get(server, "/latest/meta-data/instance-type").text == "m1.tiny"
    instances.update(cloud.cell("cell1"), UUID, metadata={"changed": "yes"})
    assert guests.get(server, "/openstack/latest/meta_data.json").json["meta"] == {"purpose": "test"}
    # A move's copy in the other cell; then its pivot.
    copy = instances.get(cloud.cell("cell1"), UUID)
    copy.flavor.name = "m2.tiny"
    with cloud.cell("cell2").write() as connection:
        instances.insert(connection, copy)
    assert guests.get(server, "/latest/meta-data/instance-type").text == "m1.tiny"
    with cloud.services.api.write() as connection:
        mappings.set_cell_in(connection, UUID, cloud.cell_uuids["cell2"], expected=cloud.cell_uuids["cell1"])
    assert guests.get(server, "/latest/meta-data/instance-type").text == "m2.tiny"
    assert guests.get(server, "/openstack/latest/meta_data.json").json["meta"] == {"changed": "yes"}
    mappings.queue_for_delete(cloud.services.api, UUID)
    assert guests.get(server, "/latest/meta-data/instance-type").status_code == 404


def test_no_more_than_so_many_are_remembered(cloud: Cloud, guests: Guests, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("causeway.metadata.lookup.MOST_REMEMBERED", 2)
    cloud.option("api", "metadata_cache_expiration", 600)
    servers = [cloud.server() for _ in range(3)]
    for server in servers:
        guests.get(server, "/latest/meta-data/hostname")
    with counted() as sent:
        for server in reversed(servers):
            guests.get(server, "/latest/meta-data/hostname")
    assert sent == {"api": 3, "cell1": 2}
