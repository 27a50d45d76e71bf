"""Resize and cold migration inside a cell: the disk goes from host to host, and back."""

from __future__ import annotations

from typing import Any

import pytest

from tests.functional.servers.moves_cloud import Cloud

ENDS = pytest.mark.parametrize("end", ["confirm", "revert"])


def other_host(host: str) -> str:
    return host[:-1] + ("2" if host.endswith("1") else "1")


def finish(cloud: Cloud, server: Any, end: str) -> Any:
    return cloud.confirmed(server) if end == "confirm" else cloud.reverted(server)


@ENDS
@pytest.mark.parametrize("power", ["ACTIVE", "SHUTOFF"])
def test_a_resize_inside_a_cell_keeps_data_and_power_state(cloud: Cloud, end: str, power: str) -> None:
    server = cloud.boot(flavor="any.small", tags=["blue"])
    first = cloud.show(server)
    cloud.driver(first.compute_host).guest_write(server.id, "precious")
    if power == "SHUTOFF":
        cloud.member.compute.stop_server(server.id)
        cloud.wait(server, "SHUTOFF")
    before = cloud.reality(server)
    moved = cloud.resized(server, "any.medium")

    assert moved.compute_host == other_host(first.compute_host)
    assert moved.flavor["original_name"] == "any.medium"
    assert cloud.hosts_of(server) == {first.compute_host: "stashed", moved.compute_host: "guest"}
    assert "precious" in cloud.driver(moved.compute_host).guest_read(server.id)
    migration = cloud.migration(server)
    assert (migration.status, migration.dest_compute) == ("finished", moved.compute_host)
    assert list(cloud.allocations(migration.uuid)) == [first.compute_host]
    assert list(cloud.allocations(server.id)) == [moved.compute_host]
    assert cloud.temporary_images() == []
    if power == "ACTIVE":
        cloud.driver(moved.compute_host).guest_write(server.id, "written on the target")
    after = finish(cloud, server, end)

    assert (after.status, after.tags) == (power, ["blue"])
    disk = cloud.driver(after.compute_host).guest_read(server.id)
    assert "precious" in disk
    assert cloud.allocations(migration.uuid) == {}
    assert cloud.migration(server).status == {"confirm": "confirmed", "revert": "reverted"}[end]
    if end == "revert":
        assert "written on the target" not in disk
        now = cloud.reality(server)
        assert {**now, "ports": None} == {**before, "ports": None}
    else:
        assert list(cloud.hosts_of(server)) == [moved.compute_host]
        (port,) = cloud.ports(server).values()
        assert port[1:] == (moved.compute_host, {moved.compute_host: "ACTIVE"})
    record = cloud.record(server, first.compute_host[:5])
    assert (record.migration_context, record.old_flavor, record.new_flavor, record.old_vm_state) == (None,) * 4
    assert record.hidden is False


@ENDS
def test_a_cold_migration_keeps_the_flavor(cloud: Cloud, end: str) -> None:
    server = cloud.boot(flavor="any.small")
    before = cloud.show(server)
    target = other_host(before.compute_host)
    cloud.admin.compute.migrate_server(server.id, host=target)
    moved = cloud.wait(server, "VERIFY_RESIZE")
    assert (moved.compute_host, moved.flavor["original_name"]) == (target, "any.small")
    assert cloud.actions(server) == ["create", "migrate"]
    after = finish(cloud, server, end)
    assert after.compute_host == (target if end == "confirm" else before.compute_host)


@ENDS
def test_a_cold_migration_reaches_a_host_of_another_cell(cloud: Cloud, end: str) -> None:
    server = cloud.boot(flavor="any.small")
    before = cloud.show(server)
    elsewhere = "cell2-host2" if before.compute_host.startswith("cell1") else "cell1-host2"
    cloud.admin.compute.migrate_server(server.id, host=elsewhere)
    moved = cloud.wait(server, "VERIFY_RESIZE")
    assert (moved.compute_host, moved.flavor["original_name"]) == (elsewhere, "any.small")
    after = finish(cloud, server, end)
    assert after.compute_host == (moved if end == "confirm" else before).compute_host
    assert cloud.cleanups(server, (before if end == "confirm" else moved).compute_host[:5]) == []


def test_a_server_that_was_moved_can_be_moved_again(cloud: Cloud) -> None:
    server = cloud.boot(flavor="any.small")
    cloud.driver(cloud.show(server).compute_host).guest_write(server.id, "precious")
    cloud.flavor("gen1.large", gen=1, disk=2)
    cloud.flavor("any.large", disk=2)
    for flavor in ("any.medium", "gen2.small", "gen1.large", "any.medium", "gen2.small"):
        cloud.resized(server, flavor)
        after = cloud.confirmed(server)
        assert "precious" in cloud.driver(after.compute_host).guest_read(server.id)
        assert cloud.hosts_of(server) == {after.compute_host: "guest"}
    for flavor in ("gen1.large", "any.large"):
        before = cloud.reality(server)
        cloud.resized(server, flavor)
        cloud.reverted(server)
        assert cloud.reality(server) == before


def test_no_server_runs_twice_while_it_is_resized(cloud: Cloud) -> None:
    server = cloud.boot(flavor="any.small")
    for flavor in ("any.medium", "gen2.small"):
        cloud.resized(server, flavor)
        cloud.reverted(server)
        cloud.resized(server, flavor)
        cloud.confirmed(server)
    assert {host: cloud.driver(host).double_starts for host in cloud.parts.computes if cloud.driver(host)} == {
        host: [] for host in cloud.parts.computes
    }
