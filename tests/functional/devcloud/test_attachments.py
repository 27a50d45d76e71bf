"""Volume attachments: how a volume is handed from one host to another, and what is refused."""

from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

PATH = "/volume/v3/attachments"


@pytest.fixture
def volume(devcloud: Any) -> str:
    body = {"volume": {"size": 1, "name": "v"}}
    return str(devcloud.ok("POST", "/volume/v3/volumes", body, "demo")["volume"]["id"])


def show(devcloud: Any, volume: str) -> dict[str, Any]:
    shown: dict[str, Any] = devcloud.ok("GET", f"/volume/v3/volumes/{volume}", user="demo")["volume"]
    return shown


def reserve(devcloud: Any, volume: str, instance: str) -> str:
    body = {"attachment": {"volume_uuid": volume, "instance_uuid": instance}}
    return str(devcloud.ok("POST", PATH, body)["attachment"]["id"])


def connect(devcloud: Any, attachment: str, host: str) -> Any:
    connector = {"host": host, "ip": "127.0.0.1", "mountpoint": "/dev/vdb"}
    return devcloud.call("PUT", f"{PATH}/{attachment}", {"attachment": {"connector": connector}})


def complete(devcloud: Any, attachment: str) -> None:
    devcloud.ok("POST", f"{PATH}/{attachment}/action", {"os-complete": {}})


def attached(devcloud: Any, volume: str, instance: str, host: str = "cell1-host1") -> str:
    attachment = reserve(devcloud, volume, instance)
    assert connect(devcloud, attachment, host).status_code == 200
    complete(devcloud, attachment)
    return attachment


def test_a_volumes_status_follows_its_attachment(devcloud: Any, volume: str) -> None:
    instance = str(uuid4())
    attachment = reserve(devcloud, volume, instance)
    assert show(devcloud, volume)["status"] == "reserved"
    info = connect(devcloud, attachment, "cell1-host1").json()["attachment"]["connection_info"]
    assert show(devcloud, volume)["status"] == "attaching"
    complete(devcloud, attachment)
    shown = show(devcloud, volume)
    assert shown["status"] == "in-use"
    assert [(each["server_id"], each["host_name"]) for each in shown["attachments"]] == [(instance, "cell1-host1")]
    devcloud.ok("DELETE", f"{PATH}/{attachment}")
    assert show(devcloud, volume)["status"] == "available"

    assert info["driver_volume_type"] == "local"
    path = Path(info["data"]["device_path"])
    assert path.stat().st_size == 1 << 30
    assert path.stat().st_blocks == 0


def test_a_volume_moves_to_another_host(devcloud: Any, volume: str) -> None:
    instance = str(uuid4())
    old = attached(devcloud, volume, instance)
    new = reserve(devcloud, volume, instance)
    assert show(devcloud, volume)["status"] == "in-use"
    assert connect(devcloud, new, "cell2-host1").status_code == 409
    devcloud.ok("DELETE", f"{PATH}/{old}")
    assert show(devcloud, volume)["status"] == "reserved"
    assert connect(devcloud, new, "cell2-host1").status_code == 200
    complete(devcloud, new)
    assert [each["attachment_id"] for each in show(devcloud, volume)["attachments"]] == [new]


def test_a_reserved_volume_takes_another_reservation_of_its_instance(devcloud: Any, volume: str) -> None:
    instance = str(uuid4())
    reserve(devcloud, volume, instance)
    reserve(devcloud, volume, instance)
    other = {"attachment": {"volume_uuid": volume, "instance_uuid": str(uuid4())}}
    assert devcloud.call("POST", PATH, other).status_code == 400


def test_a_multiattach_volume_takes_several_instances(devcloud: Any) -> None:
    body = {"volume": {"size": 1, "volume_type": "multiattach"}}
    volume = devcloud.ok("POST", "/volume/v3/volumes", body, "demo")["volume"]
    assert volume["multiattach"] is True
    for host in ("cell1-host1", "cell2-host1"):
        attached(devcloud, volume["id"], str(uuid4()), host)
    assert len(show(devcloud, volume["id"])["attachments"]) == 2


def test_a_connected_attachment_is_deleted_by_services_only(devcloud: Any, volume: str) -> None:
    attachment = attached(devcloud, volume, str(uuid4()))
    path = f"{PATH}/{attachment}"
    assert devcloud.call("DELETE", path, user="demo").status_code == 409
    wrong = {"X-Service-Token": devcloud.token("other")}
    assert devcloud.call("DELETE", path, user="demo", headers=wrong).status_code == 409
    service = {"X-Service-Token": devcloud.token("causeway")}
    assert devcloud.call("DELETE", path, user="demo", headers=service).status_code == 200
    assert devcloud.call("DELETE", path, user="demo", headers=service).status_code == 404


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"attachment": {"connector": {"ip": "127.0.0.1"}}}, 400),
        ({"attachment": {}}, 400),
        ({"attachment": []}, 400),
        ({}, 400),
        ("text", 400),
    ],
)
def test_a_connector_needs_a_host(devcloud: Any, volume: str, body: Any, status: int) -> None:
    attachment = reserve(devcloud, volume, str(uuid4()))
    assert devcloud.call("PUT", f"{PATH}/{attachment}", body).status_code == status


def test_an_attached_volume_is_neither_deleted_nor_shrunk_but_may_grow(devcloud: Any, volume: str) -> None:
    attached(devcloud, volume, str(uuid4()))
    path = f"/volume/v3/volumes/{volume}"
    assert devcloud.call("DELETE", path, user="demo").status_code == 400
    assert devcloud.call("POST", path + "/action", {"os-extend": {"new_size": 1}}).status_code == 400
    devcloud.ok("POST", path + "/action", {"os-extend": {"new_size": 2}})
    assert show(devcloud, volume)["size"] == 2
    assert (devcloud.cloud.volumes_dir / f"volume-{volume}").stat().st_size == 2 << 30


@pytest.mark.parametrize(
    ("version", "status"),
    [("volume 3.26", 404), ("volume 3.27", 200), ("volume latest", 200), ("volume 3.99", 406), ("volume x", 400)],
)
def test_attachments_exist_from_their_microversion_on(devcloud: Any, version: str, status: int) -> None:
    reply = devcloud.call("GET", PATH, headers={"OpenStack-API-Version": version})
    assert reply.status_code == status
