"""What the image service's record shows is refused by the API, with Nova's status, at every way to a local disk."""

from __future__ import annotations

import uuid as uuids
from typing import Any

import pytest

from tests.functional.servers.moves_cloud import Cloud
from tests.security.images.contents import MIB, qcow2, vdi, vmdk_text

ENCRYPTED = "Direct booting of an image uploaded from an encrypted volume is unsupported."
#: name -> (the record, the data, words of the answer)
BAD: dict[str, tuple[dict[str, Any], bytes, str]] = {
    "of an encrypted volume": ({"cinder_encryption_key_id": str(uuids.uuid4())}, bytes(MIB), ENCRYPTED),
    "a VMDK": (
        {"disk_format": "vmdk"},
        vmdk_text("/etc/shadow"),
        "Its disk_format is vmdk, and servers boot only raw,",
    ),
    "a VDI": ({"disk_format": "vdi"}, vdi(), "Its disk_format is vdi"),
    "an archive": ({"container_format": "ova"}, bytes(MIB), "Its container_format is ova"),
    "a bomb": ({"disk_format": "qcow2"}, qcow2(size=100 << 40), str(100 << 40)),
    "one that needs more": ({"min_disk": 2}, bytes(MIB), "2 GiB"),
}
CASES = pytest.mark.parametrize("name", BAD)


def make_image(cloud: Cloud, name: str) -> Any:
    record, data, _words = BAD[name]
    given = {"disk_format": "raw", "container_format": "bare", **record}
    return cloud.member.image.create_image(name=f"bad-{uuids.uuid4()}", data=data, wait=True, **given)


def refused(cloud: Cloud, path: str, body: dict[str, Any], name: str) -> None:
    answer = cloud.member.compute.post(path, json=body)
    assert answer.status_code == 400, answer.text
    (fault,) = answer.json().values()
    assert BAD[name][2] in fault["message"]


@pytest.fixture(scope="module")
def server(module_cloud: Cloud) -> Any:
    return module_cloud.boot()


@CASES
def test_no_server_is_made_from_it(cloud: Cloud, name: str) -> None:
    """1895696 on Launchpad: the one of an encrypted volume."""
    image = make_image(cloud, name)
    new = {"name": "n", "flavorRef": "gen1.small", "imageRef": image.id, "networks": "none"}
    before = {found.id for found in cloud.member.compute.servers(details=False)}
    refused(cloud, "/servers", {"server": new}, name)
    root = {"source_type": "image", "destination_type": "local", "uuid": image.id, "boot_index": 0}
    refused(cloud, "/servers", {"server": {**new, "block_device_mapping_v2": [root]}}, name)
    assert {found.id for found in cloud.member.compute.servers(details=False)} == before


@CASES
def test_no_server_is_rebuilt_or_rescued_with_it(cloud: Cloud, name: str) -> None:
    server, image = cloud.boot(), make_image(cloud, name)
    path = f"/servers/{server.id}/action"
    refused(cloud, path, {"rebuild": {"imageRef": image.id}}, name)
    if name != "one that needs more":
        # In Nova min_disk is no matter of rescue disks.
        refused(cloud, path, {"rescue": {"rescue_image_ref": image.id}}, name)
    assert cloud.show(server).status == "ACTIVE"


@pytest.mark.parametrize("change", [{"cinder_encryption_key_id": "a key"}, {"min_disk": 2}], ids=repr)
def test_no_server_is_unshelved_with_an_image_that_its_user_changed(cloud: Cloud, change: dict[str, Any]) -> None:
    cloud.option("shelved_offload_time", 0)
    server = cloud.boot()
    cloud.member.compute.shelve_server(server.id)
    cloud.wait(server, "SHELVED_OFFLOADED")
    cloud.settle()
    (image,) = cloud.member.image.images(name=f"{server.name}-shelved")
    cloud.member.image.update_image(image, **change)
    answer = cloud.member.compute.post(f"/servers/{server.id}/action", json={"unshelve": None}, microversion="2.76")
    assert answer.status_code == 400, answer.text
    assert cloud.show(server).status == "SHELVED_OFFLOADED"


def test_a_volume_can_be_made_from_an_image_of_an_encrypted_volume(cloud: Cloud) -> None:
    """The volume service decrypts it, so a server may boot from that volume."""
    image = make_image(cloud, "of an encrypted volume")
    device = {
        "source_type": "image",
        "destination_type": "volume",
        "uuid": image.id,
        "boot_index": 0,
        "volume_size": 1,
        "delete_on_termination": True,
    }
    new = {"name": "n", "flavorRef": "gen1.small", "networks": "none", "block_device_mapping_v2": [device]}
    answer = cloud.member.compute.post("/servers", json={"server": new})
    assert answer.status_code == 202, answer.text
    cloud.wait(cloud.member.compute.get_server(answer.json()["server"]["id"]), "ACTIVE")
