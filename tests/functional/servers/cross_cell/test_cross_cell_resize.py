"""Resize from one cell to another, confirm and revert: what users see, and what is really there."""

from __future__ import annotations

import pytest

from tests.functional.servers.moves_cloud import Cloud


def test_a_resize_moves_the_server_to_a_host_of_the_flavors_cell(cloud: Cloud) -> None:
    server = cloud.boot(metadata={"purpose": "test"}, tags=["blue"])
    before = cloud.show(server)
    cloud.driver(before.compute_host).guest_write(server.id, "precious")

    after = cloud.resized(server)

    assert before.compute_host.startswith("cell1") and after.compute_host.startswith("cell2")
    assert after.flavor["original_name"] == "gen2.small"
    assert (after.id, after.name, after.metadata, after.tags) == (server.id, "server", {"purpose": "test"}, ["blue"])
    assert after.addresses == before.addresses
    assert "precious" in cloud.driver(after.compute_host).guest_read(server.id)
    assert cloud.hosts_of(server) == {before.compute_host: "stashed", after.compute_host: "guest"}


def test_confirm_leaves_nothing_in_the_source_cell(cloud: Cloud) -> None:
    server = cloud.boot()
    cloud.resized(server)
    after = cloud.confirmed(server)

    assert after.status == "ACTIVE"
    assert cloud.cleanups(server, "cell1") == []
    assert list(cloud.allocations(server.id)) == [after.compute_host]
    (migration,) = cloud.admin.compute.migrations(instance_uuid=server.id)
    assert migration.status == "confirmed"
    assert cloud.allocations(migration.uuid) == {}


def test_a_revert_restores_the_server_as_it_was(cloud: Cloud) -> None:
    server = cloud.boot()
    before = cloud.show(server)
    cloud.driver(before.compute_host).guest_write(server.id, "kept")
    moved = cloud.resized(server)
    cloud.driver(moved.compute_host).guest_write(server.id, "written on the target")
    after = cloud.reverted(server)

    assert (after.status, after.compute_host) == ("ACTIVE", before.compute_host)
    assert after.flavor["original_name"] == "gen1.small"
    disk = cloud.driver(after.compute_host).guest_read(server.id)
    assert "kept" in disk and "written on the target" not in disk
    assert cloud.cleanups(server, "cell2") == []
    assert list(cloud.allocations(server.id)) == [before.compute_host]
    (migration,) = cloud.admin.compute.migrations(instance_uuid=server.id)
    assert migration.status == "reverted"
    assert cloud.allocations(migration.uuid) == {}


@pytest.mark.parametrize("end", ["confirm", "revert"])
def test_a_stopped_server_stays_stopped(cloud: Cloud, end: str) -> None:
    server = cloud.boot()
    cloud.member.compute.stop_server(server.id)
    cloud.wait(server, "SHUTOFF")
    cloud.resized(server)
    after = cloud.confirmed(server) if end == "confirm" else cloud.reverted(server)
    assert after.status == "SHUTOFF"
    assert after.power_state == 4


@pytest.mark.parametrize("end", ["confirm", "revert"])
def test_an_attached_volume_comes_along(cloud: Cloud, end: str) -> None:
    server = cloud.boot()
    volume = cloud.volume()
    cloud.attach(server, volume)
    cloud.resized(server)
    assert len(cloud.attachments(server)) == 2
    after = cloud.confirmed(server) if end == "confirm" else cloud.reverted(server)

    (attachment,) = cloud.attachments(server)
    assert attachment["status"] == "attached"
    assert cloud.member.block_storage.get_volume(volume.id).status == "in-use"
    assert [found.id for found in after.attached_volumes] == [volume.id]
    lines = cloud.driver(after.compute_host).guest_read(server.id, device="vdb")
    assert lines[0].startswith("attached") and lines[-1].startswith("boot")
