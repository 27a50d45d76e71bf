"""Resize to the host that the server is on (``allow_resize_to_same_host``): the old disks stay aside, the rest is as ever."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import os_traits
import pytest

from causeway.embedded.cloud import EmbeddedCloud
from causeway.rpc import RpcClient
from tests.functional.servers.audited_cloud import AuditedCloud
from tests.functional.servers.moves_cloud import Cloud, until

CLOUD = {"cells": 2, "hosts_per_cell": 1}


@pytest.fixture(scope="module")
def module_cloud(embedded: EmbeddedCloud) -> AuditedCloud:
    return AuditedCloud(embedded)


@pytest.fixture(autouse=True)
def allowed(cloud: AuditedCloud) -> Iterator[None]:
    cloud.option("allow_resize_to_same_host", True)
    yield


def boot(cloud: Cloud, backing: str = "image", power: str = "ACTIVE", **fields: Any) -> Any:
    cloud.flavor("gen1.medium", gen=1, vcpus=2, disk=2)
    server = cloud.boot_from_volume(**fields) if backing == "volume" else cloud.boot(**fields)
    cloud.driver("cell1-host1").guest_write(server.id, "precious")
    cloud.attach(server, cloud.volume())
    if power == "SHUTOFF":
        cloud.member.compute.stop_server(server.id)
        cloud.wait(server, "SHUTOFF")
    return server


@pytest.mark.parametrize("end", ["confirm", "revert"])
@pytest.mark.parametrize("power", ["ACTIVE", "SHUTOFF"])
@pytest.mark.parametrize("backing", ["image", "volume"])
def test_a_resize_on_the_same_host_keeps_the_old_disks_until_its_end(
    cloud: AuditedCloud, backing: str, power: str, end: str
) -> None:
    server = boot(cloud, backing, power)
    before = cloud.reality(server)
    moved = cloud.resized(server, "gen1.medium")

    assert moved.compute_host == "cell1-host1"
    assert cloud.hosts_of(server) == {"cell1-host1": "gueststashed"}
    guest = cloud.driver("cell1-host1").inspect(server.id)
    assert guest.vcpus == 2
    migration = cloud.migration(server)
    assert (migration.source_compute, migration.dest_compute) == ("cell1-host1", "cell1-host1")
    assert cloud.allocations(migration.uuid)["cell1-host1"]["VCPU"] == 1
    assert cloud.allocations(server.id)["cell1-host1"]["VCPU"] == 2
    (port,) = cloud.ports(server).values()
    assert port[1:] == ("cell1-host1", {"cell1-host1": "ACTIVE"})
    assert cloud.audit().is_clean
    assert "precious" in cloud.driver("cell1-host1").guest_read(server.id)
    if power == "ACTIVE":
        cloud.driver("cell1-host1").guest_write(server.id, "written after the resize")

    after = cloud.confirmed(server) if end == "confirm" else cloud.reverted(server)
    assert after.status == power
    assert cloud.hosts_of(server) == {"cell1-host1": "guest"}
    assert cloud.allocations(migration.uuid) == {}
    disk = cloud.driver("cell1-host1").guest_read(server.id)
    assert "precious" in disk
    if end == "revert":
        assert cloud.reality(server) == before
        # A volume keeps what was written to it.
        assert ("written after the resize" in disk) == (backing == "volume" and power == "ACTIVE")
    else:
        assert cloud.driver("cell1-host1").inspect(server.id).vcpus == 2
        now = cloud.reality(server)
        assert (now["ports"], now["volumes"], now["attachments"]) == tuple(
            before[what] for what in ("ports", "volumes", "attachments")
        )
    assert cloud.audit().is_clean
    assert cloud.driver("cell1-host1").double_starts == []


@pytest.mark.parametrize("method", ["power_off", "open_changes", "destroy", "stash_disks", "spawn", "_boot"])
def test_a_failed_one_restores_the_server(cloud: AuditedCloud, method: str) -> None:
    server = boot(cloud)
    before = cloud.reality(server)
    cloud.without_patience()
    cloud.break_driver(["cell1-host1"], method, times=1)
    cloud.member.compute.resize_server(server.id, "gen1.medium")
    cloud.failed(server)
    assert cloud.reality(server) == before
    assert "precious" in cloud.driver("cell1-host1").guest_read(server.id)
    assert cloud.audit().is_clean


@pytest.mark.parametrize("method", ["power_off", "open_changes", "destroy", "stash_disks", "spawn", "_boot"])
def test_what_fails_once_is_done_again(cloud: AuditedCloud, method: str) -> None:
    server = boot(cloud)
    cloud.break_driver(["cell1-host1"], method, times=1)
    cloud.resized(server, "gen1.medium")
    assert "precious" in cloud.driver("cell1-host1").guest_read(server.id)
    assert cloud.audit().is_clean
    cloud.reverted(server)
    assert "precious" in cloud.driver("cell1-host1").guest_read(server.id)
    assert cloud.audit().is_clean


def test_a_server_can_be_resized_again_and_again(cloud: AuditedCloud) -> None:
    server = boot(cloud)
    for flavor in ("gen1.medium", "gen2.small", "gen1.medium"):
        cloud.flavor("gen2.small2", gen=2, disk=2)
        cloud.resized(server, {"gen2.small": "gen2.small2"}.get(flavor, flavor))
        cloud.reverted(server)
    assert cloud.hosts_of(server) == {"cell1-host1": "guest"}
    assert "precious" in cloud.driver("cell1-host1").guest_read(server.id)


def test_a_server_that_waits_for_confirm_can_be_deleted(cloud: AuditedCloud) -> None:
    server = boot(cloud)
    cloud.resized(server, "gen1.medium")
    cloud.member.compute.delete_server(server.id)
    until(
        lambda: [found.id for found in cloud.admin.compute.servers(details=False)],
        lambda left: server.id not in left,
        "the server to go",
    )
    cloud.settle()
    assert cloud.hosts_of(server) == {}
    assert cloud.audit().is_clean


def test_both_flavors_must_fit_at_once(cloud: AuditedCloud) -> None:
    """Bug 1707252."""
    # All that the host has, were it not for what the server holds already.
    wanted = cloud.flavor("gen1.huge", gen=1, vcpus=2, disk=4096)
    server = boot(cloud)
    before = cloud.reality(server)
    cloud.member.compute.resize_server(server.id, wanted)
    cloud.failed(server)
    assert cloud.reality(server) == before
    assert cloud.faults(server)[-1].message.startswith("No valid host was found.")


def test_without_the_option_the_server_needs_another_host(cloud: AuditedCloud) -> None:
    cloud.option("allow_resize_to_same_host", False)
    server = boot(cloud)
    before = cloud.reality(server)
    cloud.member.compute.resize_server(server.id, "gen1.medium")
    cloud.failed(server)
    assert cloud.reality(server) == before


def test_a_cold_migration_to_the_same_host_is_refused(cloud: AuditedCloud) -> None:
    """Whatever the option says: it is about resizes, and this driver can't."""
    server = boot(cloud)
    before = cloud.reality(server)
    cloud.admin.compute.migrate_server(server.id)
    cloud.failed(server)
    assert cloud.reality(server) == before


def test_a_driver_that_can_migrate_to_the_same_host_does(cloud: AuditedCloud, monkeypatch: pytest.MonkeyPatch) -> None:
    cloud.option("allow_resize_to_same_host", False)
    compute = cloud.parts.computes["cell1-host1"]
    trait = os_traits.COMPUTE_SAME_HOST_COLD_MIGRATE
    placement = cloud.parts.around.placement
    node = next(provider for provider in placement.list_providers() if provider.name == "cell1-host1")
    with monkeypatch.context() as patch:
        patch.setattr(compute.host.driver, "supports_migrate_to_same_host", True)
        compute._reporter.report_provider()
        compute._reporter.report_alive()
        assert trait in placement.get_traits(node.uuid)
        server = boot(cloud)
        cloud.admin.compute.migrate_server(server.id)
        assert cloud.wait(server, "VERIFY_RESIZE").compute_host == "cell1-host1"
        cloud.confirmed(server)
        assert cloud.audit().is_clean
    compute._reporter.report_provider()
    compute._reporter.report_alive()
    assert trait not in placement.get_traits(node.uuid)


def test_a_host_of_0_1_0_is_not_asked(cloud: AuditedCloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would take the order for one of a move to another host."""
    cloud.without_patience()
    server = boot(cloud)
    monkeypatch.setattr(RpcClient, "can_send", lambda _self, version: version != "1.15")
    cloud.member.compute.resize_server(server.id, "gen1.medium")
    cloud.failed(server)
    assert "until it is upgraded" in cloud.faults(server)[-1].message
    assert cloud.driver("cell1-host1").running_anywhere(server.id) == ["cell1-host1"]
