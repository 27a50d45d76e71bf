"""Volumes of servers that move: their data, their states, their attachments and the flags of their devices."""

from __future__ import annotations

from typing import Any

import pytest

from tests.functional.servers.moves_cloud import PATIENCE, Cloud

ENDS = pytest.mark.parametrize("end", ["confirm", "revert"])
WAYS = pytest.mark.parametrize("flavor", ["gen2.small", "any.medium"], ids=["cross-cell", "same-cell"])


def finish(cloud: Cloud, server: Any, end: str) -> Any:
    return cloud.confirmed(server) if end == "confirm" else cloud.reverted(server)


def write(cloud: Cloud, server: Any, text: str, device: str | None = None) -> None:
    cloud.driver(cloud.show(server).compute_host).guest_write(server.id, text, device)


def read(cloud: Cloud, server: Any, device: str | None = None) -> list[str]:
    return cloud.driver(cloud.show(server).compute_host).guest_read(server.id, device)


def check_attached_once(cloud: Cloud, server: Any, volumes: list[Any]) -> None:
    """Each volume is in use, by one attachment, connected to the server's host; the API lists just these."""
    host = cloud.show(server).compute_host
    found = cloud.attachments(server)
    assert sorted(each["volume_id"] for each in found) == sorted(volume.id for volume in volumes)
    assert {each["status"] for each in found} <= {"attached"}
    for volume in volumes:
        shown = cloud.admin.block_storage.get_volume(volume.id)
        assert (shown.status, [each["host_name"] for each in shown.attachments]) == ("in-use", [host])
    listed = {each.volume_id: each.attachment_id for each in cloud.member.compute.volume_attachments(server.id)}
    assert listed == {each["volume_id"]: each["id"] for each in found}


@ENDS
@WAYS
@pytest.mark.parametrize("power", ["ACTIVE", "SHUTOFF"])
def test_a_server_on_a_volume_moves_with_its_data(cloud: Cloud, end: str, flavor: str, power: str) -> None:
    server = cloud.boot_from_volume()
    write(cloud, server, "on the root volume")
    if power == "SHUTOFF":
        cloud.member.compute.stop_server(server.id)
        cloud.wait(server, "SHUTOFF")
    before = cloud.show(server)
    (root,) = before.attached_volumes
    moved = cloud.resized(server, flavor)
    assert moved.compute_host != before.compute_host
    assert cloud.temporary_images() == []
    after = finish(cloud, server, end)

    assert after.status == power
    assert after.compute_host == (moved if end == "confirm" else before).compute_host
    assert "on the root volume" in read(cloud, server)
    check_attached_once(cloud, server, [root])
    assert list(cloud.hosts_of(server)) == [after.compute_host]
    cloud.member.compute.delete_server(server.id)
    cloud.member.compute.wait_for_delete(server, interval=0.05, wait=20)
    cloud.volume_goes(root)


@ENDS
@WAYS
def test_several_volumes_keep_their_flags_in_a_move(cloud: Cloud, end: str, flavor: str) -> None:
    server = cloud.boot()
    kept, doomed = cloud.volume(name="kept"), cloud.volume(name="doomed")
    cloud.attach(server, kept, tag="database")
    cloud.attach(server, doomed, delete_on_termination=True)
    write(cloud, server, "on vdb", "vdb")
    write(cloud, server, "on vdc", "vdc")
    flags = {
        each.volume_id: (each.device, each.tag, each.delete_on_termination, each.bdm_id)
        for each in cloud.member.compute.volume_attachments(server.id)
    }
    cloud.resized(server, flavor)
    assert "on vdb" in read(cloud, server, "vdb") and "on vdc" in read(cloud, server, "vdc")
    finish(cloud, server, end)

    assert "on vdb" in read(cloud, server, "vdb") and "on vdc" in read(cloud, server, "vdc")
    check_attached_once(cloud, server, [kept, doomed])
    assert flags == {
        each.volume_id: (each.device, each.tag, each.delete_on_termination, each.bdm_id)
        for each in cloud.member.compute.volume_attachments(server.id)
    }
    cloud.member.compute.delete_server(server.id)
    cloud.member.compute.wait_for_delete(server, interval=0.05, wait=20)
    assert cloud.volume_becomes(kept, "available").status == "available"
    cloud.volume_goes(doomed)


@ENDS
@WAYS
def test_a_volume_attached_while_the_resize_waits_for_its_end(cloud: Cloud, end: str, flavor: str) -> None:
    server, volume = cloud.boot(), cloud.volume()
    cloud.resized(server, flavor)
    cloud.attach(server, volume, tag="late")
    write(cloud, server, "written while verifying", "vdb")
    finish(cloud, server, end)

    check_attached_once(cloud, server, [volume])
    assert "written while verifying" in read(cloud, server, "vdb")
    (listed,) = cloud.member.compute.volume_attachments(server.id)
    assert listed.tag == "late"
    cloud.detach(server, volume)
    assert cloud.volume_becomes(volume, "available").status == "available"


@ENDS
@WAYS
def test_a_volume_detached_while_the_resize_waits_for_its_end(cloud: Cloud, end: str, flavor: str) -> None:
    server, gone, stays = cloud.boot(), cloud.volume(name="gone"), cloud.volume(name="stays")
    cloud.attach(server, gone)
    cloud.attach(server, stays)
    cloud.resized(server, flavor)
    cloud.detach(server, gone)
    finish(cloud, server, end)

    assert cloud.member.block_storage.get_volume(gone.id).status == "available"
    check_attached_once(cloud, server, [stays])
    assert [volume.id for volume in cloud.show(server).attached_volumes] == [stays.id]


def test_a_revert_that_can_not_reserve_a_volume_leaves_the_resize_to_be_confirmed(cloud: Cloud) -> None:
    server, volume, other = cloud.boot(), cloud.volume(), cloud.volume()
    cloud.resized(server)
    cloud.attach(server, volume)
    cloud.attach(server, other)
    before = cloud.reality(server)
    cloud.fail("delay", "/attachments$", service="volume", method="POST", times=1)
    cloud.fail("status", "/attachments$", service="volume", method="POST", status=400, times=1)
    cloud.member.compute.revert_server_resize(server.id)
    cloud.settle()

    after = cloud.wait(server, "VERIFY_RESIZE")
    assert cloud.migration(server).status == "finished"
    assert cloud.action(server, "revertResize").message not in (None, "Error")
    assert cloud.reality(server) == before
    cloud.confirmed(after)
    check_attached_once(cloud, server, [volume, other])
    assert cloud.cleanups(server, "cell1") == []


def test_a_reservation_whose_answer_is_lost_is_taken(cloud: Cloud) -> None:
    server, volume = cloud.boot(), cloud.volume()
    cloud.fail("lose_reply", "/attachments$", method="POST", service="volume", times=1)
    cloud.attach(server, volume)
    assert cloud.volume_becomes(volume, "in-use").status == "in-use"
    (attachment,) = cloud.attachments(server)
    assert attachment["status"] == "attached"


@pytest.fixture
def multiattach(cloud: Cloud) -> str:
    """A type of volumes that several servers may have."""
    return str(cloud.admin.block_storage.find_type("multiattach").name)


def two_on_one_host(cloud: Cloud) -> tuple[Any, Any]:
    by_host: dict[str, Any] = {}
    for number in range(3):
        server = cloud.boot(name=f"server-{number}")
        host = cloud.show(server).compute_host
        if host in by_host:
            return by_host[host], server
        by_host[host] = server
    raise AssertionError("three servers on two hosts, and no two on one")


@ENDS
@WAYS
def test_a_volume_of_two_servers_goes_along_with_the_one_and_stays_with_the_other(
    cloud: Cloud, multiattach: str, end: str, flavor: str
) -> None:
    server, other = two_on_one_host(cloud)
    volume = cloud.volume(volume_type=multiattach)
    for each in (server, other):
        cloud.attach(each, volume)
    write(cloud, server, "of the one", "vdb")
    (of_other,) = cloud.attachments(other)
    cloud.resized(server, flavor)
    write(cloud, other, "of the other", "vdb")
    finish(cloud, server, end)

    for each in (server, other):
        assert {"of the one", "of the other"} <= set(read(cloud, each, "vdb"))
        assert [found.volume_id for found in cloud.member.compute.volume_attachments(each.id)] == [volume.id]
    assert [found["status"] for found in cloud.attachments(server)] == ["attached"]
    shown = cloud.admin.block_storage.get_volume(volume.id)
    assert {found["server_id"]: found["host_name"] for found in shown.attachments} == {
        each.id: cloud.show(each).compute_host for each in (server, other)
    }
    assert cloud.attachments(other) == [of_other]
    assert cloud.admin.block_storage.get_volume(volume.id).status == "in-use"
    cloud.detach(server, volume)
    assert cloud.admin.block_storage.get_volume(volume.id).status == "in-use"
    assert cloud.attachments(other) == [of_other]
    cloud.detach(other, volume)
    assert cloud.volume_becomes(volume, "available").status == "available"


def test_a_failed_move_leaves_the_other_servers_use_of_a_volume_alone(cloud: Cloud, multiattach: str) -> None:
    server, other = cloud.boot(), cloud.boot()
    volume = cloud.volume(volume_type=multiattach)
    for each in (server, other):
        cloud.attach(each, volume)
    before = cloud.reality(server), cloud.reality(other)
    cloud.option("vif_plugging_timeout", 1)
    cloud.parts.devcloud.unpluggable_hosts = {"cell2-host1", "cell2-host2"}
    cloud.member.compute.resize_server(server.id, "gen2.small")
    cloud.failed(server)
    assert (cloud.reality(server), cloud.reality(other)) == before


def test_old_versions_refuse_a_multiattach_volume(cloud: Cloud, multiattach: str) -> None:
    server, volume = cloud.boot(), cloud.volume(volume_type=multiattach)
    body = {"volumeAttachment": {"volumeId": volume.id}}
    path = f"/servers/{server.id}/os-volume_attachments"
    refused = cloud.member.compute.post(path, json=body, microversion="2.59")
    assert refused.status_code == 409
    server_body = {
        "name": "x",
        "flavorRef": "gen1.small",
        "imageRef": cloud.image_id,
        "networks": "none",
        "block_device_mapping_v2": [
            {"boot_index": 0, "uuid": cloud.image_id, "source_type": "image", "destination_type": "local"},
            {"boot_index": -1, "uuid": volume.id, "source_type": "volume", "destination_type": "volume"},
        ],
    }
    refused = cloud.member.compute.post("/servers", json={"server": server_body}, microversion="2.59")
    assert refused.status_code == 409
    assert cloud.attachments(server) == []


def test_servers_are_made_with_a_multiattach_volume(cloud: Cloud, multiattach: str) -> None:
    volume = cloud.volume(volume_type=multiattach)
    mapping = [
        {"boot_index": 0, "uuid": cloud.image_id, "source_type": "image", "destination_type": "local"},
        {"boot_index": -1, "uuid": volume.id, "source_type": "volume", "destination_type": "volume"},
    ]
    servers = [cloud.boot(name=f"sharing-{number}", block_device_mapping=mapping) for number in range(2)]
    moved = cloud.resized(servers[0])
    assert moved.compute_host.startswith("cell2")
    cloud.confirmed(servers[0])
    for server in servers:
        check = cloud.attachments(server)
        assert [(each["volume_id"], each["status"]) for each in check] == [(volume.id, "attached")]


@pytest.mark.parametrize("source", ["image", "volume", "snapshot", "blank"])
def test_a_server_with_an_image_boots_from_a_volume_and_moves(cloud: Cloud, source: str) -> None:
    """The image says what the guest needs; what is on its root disk is up to the volume."""
    storage = cloud.member.block_storage
    made = [cloud.volume()] if source in ("volume", "snapshot") else []
    snapshot = storage.create_snapshot(volume_id=made[0].id) if source == "snapshot" else None
    if snapshot is not None:
        storage.wait_for_status(snapshot, "available", interval=0.05, wait=PATIENCE)
    identifiers = {"image": cloud.image_id, "volume": made and made[0].id, "snapshot": snapshot and snapshot.id}
    root = {"boot_index": 0, "source_type": source, "destination_type": "volume", "delete_on_termination": True}
    root |= {"uuid": identifiers[source]} if source in identifiers else {}
    root |= {"volume_size": 1} if source in ("image", "blank") else {}
    server = cloud.boot(block_device_mapping=[root])
    assert len(cloud.show(server).attached_volumes) == 1
    moved = cloud.resized(server)
    assert moved.compute_host.startswith("cell2")
    cloud.confirmed(server)
    cloud.clean()
    if snapshot is not None:
        storage.delete_snapshot(snapshot)
        storage.wait_for_delete(snapshot, interval=0.05, wait=PATIENCE)
    if source == "snapshot":
        storage.delete_volume(made[0])
