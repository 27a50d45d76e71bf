"""Resizes and cold migrations between hosts that share storage: the disks stay where they are, and get another owner."""

from __future__ import annotations

from typing import Any

import pytest

from tests.functional.servers.shared_disks.shared_cloud import OPTIONS, SharedCloud

KIND = SharedCloud
CLOUD: dict[str, Any] = {"cells": 2, "hosts_per_cell": 2, "overrides": OPTIONS}


def moved(cloud: SharedCloud, server: Any, how: str) -> str:
    """Moves the server to another host, until it waits for confirm or revert. Returns its former host."""
    source = cloud.host_of(server)
    if how == "migrate":
        cloud.admin.compute.migrate_server(server.id)
        cloud.wait(server, "VERIFY_RESIZE")
        cloud.settle()
    else:
        cloud.resized(server, cloud.larger(1 if how == "inside" else 2))
    assert (cloud.host_of(server)[:5] == source[:5]) is (how != "across")
    return source


@pytest.mark.parametrize("how", ["inside", "across", "migrate"])
def test_no_byte_of_a_disk_moves_and_a_confirm_keeps_the_disks(cloud: SharedCloud, how: str) -> None:
    server = cloud.with_disks()
    names = cloud.names(server)
    assert len(names) == 3
    source = moved(cloud, server, how)
    cloud.check_store(server, put_aside=True)
    assert cloud.names(server) == names
    assert cloud.bytes_moved(server) == 0
    assert [image.name for image in cloud.admin.image.images()] == ["demo"]
    for device in ("vda", "vdb", "vdc"):
        assert f"written on {device}" in cloud.read(server, device)
    cloud.write(server, "after the move")
    cloud.confirmed(server)
    assert "after the move" in cloud.read(server)
    assert cloud.host_of(server) != source
    assert cloud.names(server) == names
    cloud.check_clean(server)


@pytest.mark.parametrize("how", ["inside", "across", "migrate"])
def test_a_revert_restores_content_and_size_of_before(cloud: SharedCloud, how: str) -> None:
    server = cloud.with_disks()
    sizes = cloud.driver(cloud.host_of(server)).guest_disks(server.id)
    source = moved(cloud, server, how)
    if how != "migrate":
        assert cloud.driver(cloud.host_of(server)).guest_disks(server.id) != sizes
    for device in ("vda", "vdb"):
        cloud.write(server, "after the move", device)
    cloud.reverted(server)
    assert cloud.host_of(server) == source
    assert cloud.driver(source).guest_disks(server.id) == sizes
    for device in ("vda", "vdb", "vdc"):
        assert f"written on {device}" in cloud.read(server, device)
        assert "after the move" not in cloud.read(server, device)
    cloud.check_clean(server)


@pytest.mark.parametrize("how", ["inside", "across"])
def test_a_server_that_is_deleted_after_its_move_leaves_nothing_in_the_store(cloud: SharedCloud, how: str) -> None:
    server = cloud.with_disks()
    moved(cloud, server, how)
    cloud.member.compute.delete_server(server.id)
    cloud.member.compute.wait_for_delete(server)
    cloud.settle()
    assert cloud.names(server) == []
    assert list(cloud.store.folder.glob(f"*/{server.id}*")) == []


def test_many_moves_leave_one_disk_each(cloud: SharedCloud) -> None:
    server = cloud.with_disks()
    names = cloud.names(server)
    for number in range(3):
        cloud.resized(server, cloud.flavor(f"shared.again.{number}", gen=2 - number % 2, disk=1, ephemeral=1, swap=64))
        cloud.write(server, f"move {number}")
        cloud.confirmed(server)
    assert cloud.read(server)[-5:].count("move 2") == 1
    assert cloud.names(server) == names
    cloud.check_clean(server)


def test_a_flavor_without_ephemeral_disk_and_swap_deletes_them_only_at_confirm(cloud: SharedCloud) -> None:
    server = cloud.with_disks()
    before = cloud.names(server)
    cloud.resized(server, cloud.flavor("shared.other.swap", gen=2, disk=1, ephemeral=1, swap=128))
    assert cloud.names(server) == before
    cloud.reverted(server)
    assert "written on vdb" in cloud.read(server, "vdb")
    cloud.check_clean(server)


def test_the_guest_does_not_start_where_its_disk_is_not_its_own(cloud: SharedCloud) -> None:
    """An administrator hard-reboots a guest whose definition is still at its former host."""
    server = cloud.with_disks()
    host = cloud.host_of(server)
    name = f"{server.id}_disk"
    cloud.member.compute.stop_server(server.id)
    cloud.wait(server, "SHUTOFF")
    owner = cloud.store.find(name)
    assert owner is not None and owner.owner == f"{host} 1"
    cloud.store.set_owner(name, "elsewhere 2")
    cloud.member.compute.start_server(server.id)
    cloud.settle()
    assert cloud.show(server).status in ("SHUTOFF", "ERROR")
    cloud.store.set_owner(name, f"{host} 1")
    cloud.admin.compute.reset_server_state(server.id, "active")
    cloud.member.compute.reboot_server(server.id, "HARD")
    cloud.wait(server, "ACTIVE")
    assert "written on vda" in cloud.read(server)


def test_explain_says_that_no_byte_would_move(cloud: SharedCloud) -> None:
    server = cloud.with_disks()
    answer = cloud.admin.compute.get(
        f"/os-causeway/servers/{server.id}/move-candidates", params={"flavor": cloud.larger(2)}
    )
    found = {each["host"]: each for each in answer.json()["move_candidates"]["candidates"] if each["checked"]}
    assert found
    for candidate in found.values():
        (check,) = [each for each in candidate["checks"] if each["name"] == "disks"]
        assert check["message"] == f"none of their bytes would move: both hosts keep them in {cloud.store.id}"
