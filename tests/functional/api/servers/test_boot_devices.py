"""Which devices a server may be created with, and which of them it boots from: Nova's rules, one by one."""

from __future__ import annotations

from typing import Any

import pytest

from causeway import errors
from causeway.clients.volume import Volume
from causeway.clients.volume_snapshots import Snapshot
from causeway.model.flavor import Flavor
from causeway.model.image import ImageMeta
from causeway.model.network import RequestedNetwork
from causeway.store.api import build_requests, flavors

IMAGE, OTHER_IMAGE = "11111111-2222-3333-4444-555555555555", "11111111-2222-3333-4444-666666666666"
VOLUME, OTHER_VOLUME = "33333333-2222-3333-4444-555555555555", "33333333-2222-3333-4444-666666666666"
SNAPSHOT = "55555555-2222-3333-4444-555555555555"


@pytest.fixture(autouse=True)
def surroundings(cloud: Any, images: Any, network: Any, volumes: Any) -> None:
    flavors.create(cloud.services.api, Flavor("1", "small", 1, 128, 1, ephemeral_gb=2, swap=64))
    images.answers["show"] = lambda _context, image_id: ImageMeta(image_id, properties={"from": image_id[-1]})
    network.answers["validate_networks"] = lambda _context, requested, *_, **__: requested or [RequestedNetwork("net")]
    volumes.answers["show"] = lambda _context, volume_id: Volume(
        volume_id, "available", 2, bootable=volume_id == VOLUME, image_metadata={"from": "volume"}
    )
    volumes.answers["show_snapshot"] = lambda _context, snapshot_id: Snapshot(snapshot_id, VOLUME, 7)


def device(source: str, destination: str, boot_index: int | str | None = None, **more: Any) -> dict[str, Any]:
    ids = {"image": IMAGE, "volume": VOLUME, "snapshot": SNAPSHOT}
    given = {"source_type": source, "destination_type": destination, "boot_index": boot_index} | more
    if source in ids:
        given.setdefault("uuid", ids[source])
    if source in ("image", "blank") and destination == "volume":
        given.setdefault("volume_size", 1)
    return given


IMAGE_DISK = device("image", "local", 0)
SWAP = device("blank", "local", -1, guest_format="swap")

# What is asked for (imageRef, devices) -> what the root disk is made from (source, destination), and whose properties count.
ACCEPTED: dict[str, tuple[bool, list[dict[str, Any]], tuple[str, str], str]] = {
    "the image alone": (True, [], ("image", "local"), "5"),
    "the image, said to be the disk": (True, [IMAGE_DISK], ("image", "local"), "5"),
    "the image and a data volume": (True, [IMAGE_DISK, device("volume", "volume", -1)], ("image", "local"), "5"),
    "the image and a data volume without an index": (
        True, [IMAGE_DISK, device("volume", "volume", None)], ("image", "local"), "5"
    ),
    "the image and a second disk to boot from": (
        True, [device("volume", "volume", 1), IMAGE_DISK], ("image", "local"), "5"
    ),
    "an image with a volume to boot from": (True, [device("volume", "volume", 0)], ("volume", "volume"), "5"),
    "an image with a volume that is not bootable": (
        True, [device("volume", "volume", 0, uuid=OTHER_VOLUME)], ("volume", "volume"), "5"
    ),
    "an image with itself in a volume": (True, [device("image", "volume", 0)], ("image", "volume"), "5"),
    "an image with another one in a volume": (
        True, [device("image", "volume", 0, uuid=OTHER_IMAGE)], ("image", "volume"), "5"
    ),
    "an image with a snapshot": (True, [device("snapshot", "volume", 0)], ("snapshot", "volume"), "5"),
    "a volume": (False, [device("volume", "volume", 0)], ("volume", "volume"), "volume"),
    "a volume and a data volume": (
        False, [device("volume", "volume", 0), device("volume", "volume", -1, uuid=OTHER_VOLUME)], ("volume", "volume"),
        "volume",
    ),
    "an image in a volume": (False, [device("image", "volume", "0", uuid=OTHER_IMAGE)], ("image", "volume"), "6"),
    "a snapshot": (False, [device("snapshot", "volume", 0)], ("snapshot", "volume"), "volume"),
    "an empty volume": (False, [device("blank", "volume", 0)], ("blank", "volume"), ""),
    "the image and swap": (True, [IMAGE_DISK, SWAP], ("image", "local"), "5"),
    "no device": (True, [IMAGE_DISK, {"no_device": True, "device_name": "/dev/vdb"}], ("image", "local"), "5"),
}  # fmt: skip

ORDER = "Boot sequence for the instance and image/block device mapping combination is not valid."
REFUSED: dict[str, tuple[bool, list[dict[str, Any]], str]] = {
    "an image and a data volume: nothing to boot from": (True, [device("volume", "volume", -1)], ORDER),
    "an image and a volume without an index": (True, [device("volume", "volume", None)], ORDER),
    "an image and swap": (True, [SWAP], ORDER),
    "an image and nothing else": (True, [{"no_device": True}], ORDER),
    "a data volume alone": (False, [device("volume", "volume", -1)], ORDER),
    "two to boot from first": (True, [IMAGE_DISK, device("volume", "volume", 0)], ORDER),
    "none to boot from first": (True, [device("volume", "volume", 1)], ORDER),
    "one left out": (True, [IMAGE_DISK, device("volume", "volume", 2)], ORDER),
    "a local disk of an image that is not the server's": (
        True, [device("image", "local", 0, uuid=OTHER_IMAGE)], "can't be the local root disk"
    ),
    "a local disk of an image without imageRef": (False, [IMAGE_DISK], "Mapping image to local is not supported."),
    "the image as a second local disk": (
        True, [device("image", "local", -1)], "Mapping image to local is not supported."
    ),
    "a local volume": (True, [device("volume", "local", 0)], "Mapping volume to local is not supported."),
    "a local snapshot": (True, [device("snapshot", "local", 0)], "Mapping snapshot to local is not supported."),
    "a volume that is not bootable": (False, [device("volume", "volume", 0, uuid=OTHER_VOLUME)], "is not bootable"),
    "a volume with the name of the root disk": (
        True, [IMAGE_DISK, device("volume", "volume", -1, device_name="/dev/vda")],
        "The volume cannot be assigned the same device name as the root device",
    ),
    "a bus that nobody knows": (True, [IMAGE_DISK, device("volume", "volume", -1, disk_bus="warp")], "disk bus warp"),
    "an image in a volume of no size": (False, [device("image", "volume", 0, volume_size=None)], "non-zero size"),
    "an empty volume of no size": (
        True, [IMAGE_DISK, device("blank", "volume", volume_size=None)], "size"
    ),
    "nothing at all": (False, [], "Missing imageRef attribute"),
}  # fmt: skip


def body(has_image: bool, devices: list[dict[str, Any]], **fields: Any) -> dict[str, Any]:
    server = {"name": "new", "flavorRef": "1", "networks": "auto", "imageRef": IMAGE if has_image else ""} | fields
    given = [{key: value for key, value in each.items() if key != "volume_size" or value} for each in devices]
    return {"server": server | ({"block_device_mapping_v2": given} if given else {})}


def created(cloud: Any, answer: Any) -> build_requests.BuildRequest:
    assert answer.status == 202, answer.text
    found = build_requests.find(cloud.services.api, answer.json["server"]["id"])
    assert found is not None
    return found


@pytest.mark.parametrize("case", ACCEPTED)
def test_the_root_disk_is_the_first_bootable_device(api: Any, cloud: Any, case: str) -> None:
    has_image, devices, root, properties_of = ACCEPTED[case]
    request = created(cloud, api.post("/servers", body(has_image, devices)))
    (first,) = (each for each in request.block_devices if each.is_root)
    assert (first.source_type, first.destination_type) == root
    meta = request.instance.image_meta
    assert (meta.properties["from"] if meta else "") == properties_of
    # As of every server whose root disk is a volume: its image is shown as the volume's, not the server's.
    shown = api.get(f"/servers/{request.instance_uuid}").json["server"]["image"]
    assert (shown == "") is first.is_volume


@pytest.mark.parametrize("case", REFUSED)
def test_devices_that_a_server_can_t_boot_from_are_refused(api: Any, conductor: Any, cloud: Any, case: str) -> None:
    has_image, devices, message = REFUSED[case]
    answer = api.post("/servers", body(has_image, devices))
    assert (answer.status, answer.fault) == (400, "badRequest") and message in answer.message
    assert conductor.calls == [] and build_requests.list_for(cloud.services.api, None) == []


def test_a_volume_from_a_snapshot_has_its_size(api: Any, cloud: Any, volumes: Any) -> None:
    (root, *_) = created(cloud, api.post("/servers", body(False, [device("snapshot", "volume", 0)]))).block_devices
    assert root.volume_size == 7
    larger = device("snapshot", "volume", 0, volume_size=9)
    (root, *_) = created(cloud, api.post("/servers", body(False, [larger]))).block_devices
    assert root.volume_size == 9
    volumes.answers["show_snapshot"] = errors.NotFound("Snapshot could not be found.")
    answer = api.post("/servers", body(True, [IMAGE_DISK, device("snapshot", "volume")]))
    assert answer.status == 400 and f"failed to get snapshot {SNAPSHOT}" in answer.message


def test_a_volume_goes_to_one_server_also_if_it_could_go_to_several(api: Any, volumes: Any) -> None:
    volumes.answers["show"] = lambda _context, volume_id: Volume(volume_id, "available", 2, multiattach=True)
    answer = api.post("/servers", body(True, [IMAGE_DISK, device("volume", "volume")], max_count=2))
    assert (answer.status, answer.message) == (400, "Cannot attach one or more volumes to multiple instances")


# imageRef, devices in the old form -> (source, destination) of each disk in order; the first one is the root disk.
LEGACY: dict[str, tuple[bool, list[dict[str, Any]], list[tuple[str, str]]]] = {
    "the image, beside it a volume": (
        True, [{"device_name": "/dev/vdb", "volume_id": VOLUME}], [("image", "local"), ("volume", "volume")]
    ),
    "a volume with the name of the root disk": (
        True, [{"device_name": "/dev/vda", "volume_id": VOLUME}], [("volume", "volume")]
    ),
    "a volume": (False, [{"device_name": "vda", "volume_id": VOLUME}], [("volume", "volume")]),
    "a snapshot": (False, [{"device_name": "vda", "snapshot_id": SNAPSHOT}], [("snapshot", "volume")]),
    "no device": (True, [{"device_name": "vdb", "no_device": ""}], [("image", "local")]),
    "swap and an ephemeral disk": (
        True,
        [{"device_name": "vdb", "virtual_name": "swap"}, {"device_name": "vdc", "virtual_name": "ephemeral0"}],
        [("image", "local"), ("blank", "local"), ("blank", "local")],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", LEGACY)
def test_the_old_form_of_devices_is_translated(api: Any, cloud: Any, case: str) -> None:
    has_image, devices, expected = LEGACY[case]
    request = created(cloud, api.post("/servers", body(has_image, [], block_device_mapping=devices)))
    asked = [each for each in request.block_devices if each.source_type != "blank" or each.device_name]
    assert [(each.source_type, each.destination_type) for each in asked] == expected
    assert [each.is_root for each in asked] == [True] + [False] * (len(expected) - 1)


@pytest.mark.parametrize(
    ("has_image", "given", "message"),
    [
        (False, {"device_name": "/dev/vdb", "volume_id": VOLUME}, ORDER),
        (False, {"volume_id": VOLUME}, ORDER),
        (True, {"device_name": "/dev/vdb"}, "Unrecognized legacy format."),
        (True, {"device_name": "/dev/vdb", "virtual_name": "ephemeral01"}, "Unrecognized legacy format."),
    ],
)
def test_the_old_form_refused(api: Any, has_image: bool, given: dict[str, Any], message: str) -> None:
    answer = api.post("/servers", body(has_image, [], block_device_mapping=[given]))
    assert answer.status == 400 and message in answer.message


def test_the_root_disk_has_the_name_that_the_image_gives_it(api: Any, cloud: Any, images: Any) -> None:
    images.answers["show"] = lambda _context, image_id: ImageMeta(image_id, properties={"root_device_name": "/dev/sda"})
    given = [{"device_name": "sda", "volume_id": VOLUME}, {"device_name": "vda", "volume_id": OTHER_VOLUME}]
    request = created(cloud, api.post("/servers", body(True, [], block_device_mapping=given)))
    assert [each.volume_id for each in request.block_devices if each.is_root] == [VOLUME]


def test_both_forms_at_once_are_refused(api: Any) -> None:
    given = [{"device_name": "vdb", "volume_id": VOLUME}]
    answer = api.post("/servers", body(True, [IMAGE_DISK], block_device_mapping=given))
    assert answer.status == 400 and "Using different block_device_mapping syntaxes" in answer.message
    # An empty one is none.
    assert api.post("/servers", body(True, [IMAGE_DISK], block_device_mapping=[])).status == 202
