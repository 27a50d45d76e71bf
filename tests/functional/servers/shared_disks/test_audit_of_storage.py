"""What the audit says of disks in storage that hosts share."""

from __future__ import annotations

from typing import Any

from causeway.model.audit import Disagreement
from tests.functional.servers.shared_disks.shared_cloud import OPTIONS, SharedCloud

KIND = SharedCloud
CLOUD: dict[str, Any] = {"cells": 2, "hosts_per_cell": 2, "overrides": OPTIONS}


def found(cloud: SharedCloud, kind: str) -> list[Disagreement]:
    return [each for each in cloud.audit().disagreements if each.kind == kind]


def deleted(cloud: SharedCloud) -> Any:
    """A server that was deleted."""
    server = cloud.with_disks()
    cloud.member.compute.delete_server(server.id)
    cloud.member.compute.wait_for_delete(server)
    cloud.settle()
    return server


def test_disks_of_a_deleted_server_are_found_and_deleted(cloud: SharedCloud) -> None:
    server = deleted(cloud)
    name = f"{server.id}_disk"
    cloud.store.path(name).write_text("left")
    cloud.store.set_owner(name, "cell1-host1 1")
    (orphan,) = found(cloud, "storage.orphaned")
    assert (orphan.server, orphan.resource) == (server.id, f"disk {name}")
    cloud.fixes("storage.orphaned")
    assert cloud.names(server) == []


def test_a_disk_that_nobody_knows_is_kept(cloud: SharedCloud) -> None:
    name = "0e1a2b3c-4d5e-6f70-8192-a3b4c5d6e7f8_disk"
    cloud.store.path(name).write_text("another cloud's")
    try:
        cloud.only_reports("storage.orphaned")
        assert name in cloud.store.names()
    finally:
        cloud.store.remove(name)


def test_a_disk_of_another_host_than_its_servers_is_critical_and_is_kept(cloud: SharedCloud) -> None:
    server = cloud.with_disks()
    name, owner = f"{server.id}_disk", f"{cloud.host_of(server)} 1"
    cloud.store.set_owner(name, "elsewhere 7")
    (wrong,) = found(cloud, "storage.owner")
    assert wrong.severity == "critical" and "belongs to elsewhere" in wrong.message and wrong.fix is None
    cloud.store.set_owner(name, owner)
    assert cloud.audit().is_clean


def test_a_copy_of_a_move_that_has_ended_is_found_and_deleted(cloud: SharedCloud) -> None:
    server = cloud.with_disks()
    name = f"{server.id}_disk.arriving.0e1a2b3c"
    cloud.store.path(name).write_text("half of it")
    (left,) = found(cloud, "storage.arriving")
    assert (left.server, left.resource) == (server.id, f"disk {name}")
    assert found(cloud, "storage.owner") == []
    cloud.fixes("storage.arriving")
    assert name not in cloud.names(server)


def test_a_snapshot_of_rounds_that_have_ended_is_found(cloud: SharedCloud) -> None:
    server = cloud.with_disks()
    name = f"{server.id}_disk"
    cloud.store.make_snapshot(name, "round-cell1-host1-1")
    cloud.only_reports("storage.round")
    cloud.store.delete_snapshot(name, "round-cell1-host1-1")


def test_what_a_disk_was_before_a_move_is_kept_only_for_its_revert(cloud: SharedCloud) -> None:
    server = cloud.with_disks()
    cloud.resized(server, cloud.larger(2))
    assert cloud.audit().is_clean
    cloud.confirmed(server)
    cloud.settle()
    name = f"{server.id}_disk"
    cloud.store.make_snapshot(name, "stash-cell1-host1-1")
    cloud.only_reports("storage.put_aside")
    cloud.store.delete_snapshot(name, "stash-cell1-host1-1")
