"""A guest goes to another host without stopping, and everything that knows of it follows."""

from __future__ import annotations

from typing import Any

import pytest

from .live_cloud import LiveCloud, until


def test_a_guest_keeps_its_memory(cloud: LiveCloud) -> None:
    server = cloud.boot()
    source = cloud.host_of(server)
    memory = cloud.remember(server, "a line")
    cloud.driver(source).guest_write(server.id, "on disk")
    after = cloud.migrated(server)
    assert (after.status, after.compute_host) == ("ACTIVE", cloud.other(source)), cloud.migration(server)
    assert cloud.memory(server) == memory
    assert "on disk" in cloud.driver(after.compute_host).guest_read(server.id)
    migration = cloud.migration(server)
    assert (migration.status, migration.migration_type) == ("completed", "live-migration")
    assert (migration.source_compute, migration.dest_compute) == (source, after.compute_host)
    cloud.check_left_nothing(server, after.compute_host)
    assert cloud.events(server, "live-migration") == [
        ("conductor_live_migrate_instance", "Success"),
        ("compute_check_can_live_migrate_source", "Success"),
        ("compute_check_can_live_migrate_destination", "Success"),
        ("compute_pre_live_migration", "Success"),
        ("compute_post_live_migration_at_destination", "Success"),
    ]
    # And back, to the host where something of it was before.
    assert cloud.migrated(server).compute_host == source
    assert cloud.memory(server) == memory
    cloud.check_left_nothing(server, source)


def test_a_reboot_loses_what_a_live_migration_keeps(cloud: LiveCloud) -> None:
    server = cloud.boot()
    memory = cloud.remember(server, "a line")
    cloud.migrated(server)
    cloud.admin.compute.reboot_server(server.id, "HARD")
    cloud.wait(server, "ACTIVE")
    assert memory[-1] not in cloud.memory(server) and cloud.memory(server)[0] != memory[0]


@pytest.mark.parametrize("kind", ["image", "volume"])
def test_volumes_go_along(cloud: LiveCloud, kind: str) -> None:
    server = cloud.boot() if kind == "image" else cloud.boot_from_volume()
    source, volume = cloud.host_of(server), cloud.volume()
    cloud.attach(server, volume)
    cloud.driver(source).guest_write(server.id, "kept", "vdb")
    before = cloud.attachments(server)
    after = cloud.migrated(server)
    assert after.compute_host == cloud.other(source)
    cloud.driver(after.compute_host).guest_write(server.id, "more", "vdb")
    assert cloud.driver(after.compute_host).guest_read(server.id, "vdb")[-2:] == ["kept", "more"]
    attachments = cloud.attachments(server)
    assert len(attachments) == len(before)
    assert not {each["id"] for each in attachments} & {each["id"] for each in before}
    assert {each["status"] for each in attachments} == {"attached"}
    cloud.check_left_nothing(server, after.compute_host)
    cloud.detach(server, volume)
    assert cloud.volume_becomes(volume, "available").status == "available"


def test_a_paused_server_stays_paused(cloud: LiveCloud) -> None:
    server = cloud.boot()
    memory = cloud.remember(server, "a line")
    cloud.admin.compute.pause_server(server.id)
    cloud.wait(server, "PAUSED")
    after = cloud.migrated(server)
    assert (after.status, after.compute_host != cloud.show(server).host_status) == ("PAUSED", True)
    cloud.admin.compute.unpause_server(server.id)
    cloud.wait(server, "ACTIVE")
    assert cloud.memory(server) == memory
    assert cloud.audit().disagreements == []


def test_local_disks_go_along(cloud: LiveCloud) -> None:
    flavor = cloud.flavor("live.disks", gen=1, disk=1, ephemeral=1, swap=64)
    server = cloud.boot(flavor=flavor)
    source = cloud.host_of(server)
    cloud.driver(source).guest_write(server.id, "kept", "vdb")
    disks = cloud.driver(source).guest_disks(server.id)
    after = cloud.migrated(server)
    assert after.compute_host == cloud.other(source)
    assert cloud.driver(after.compute_host).guest_disks(server.id) == disks
    assert "kept" in cloud.driver(after.compute_host).guest_read(server.id, "vdb")
    cloud.check_left_nothing(server, after.compute_host)


def test_progress_is_shown_and_a_busy_guest_is_aborted(cloud: LiveCloud) -> None:
    server = cloud.boot()
    source = cloud.host_of(server)
    memory = cloud.remember(server, "a line")
    cloud.busy(server)
    cloud.option("live_migration_monitor_interval", 0.0, "libvirt")
    assert cloud.migrate_live(server).status_code == 202
    migration = cloud.becomes(server, "running")
    assert cloud.show(server).status == "MIGRATING"
    path = f"/servers/{server.id}/migrations"
    shown = until_counted(cloud, f"{path}/{migration.id}")
    assert shown["memory_total_bytes"] == 128 * 1024**2 and shown["memory_remaining_bytes"] == 64 * 1024**2
    # It is sent with the next report.
    until(lambda: cloud.show(server).progress, lambda progress: progress == 50, "the server's progress")
    listed = cloud.admin.compute.get("/os-migrations", params={"instance_uuid": server.id}, microversion="2.96").json()
    assert [each["rel"] for each in listed["migrations"][0]["links"]] == ["self", "bookmark"]
    assert cloud.audit().disagreements == []
    # A user may not do anything else to it meanwhile.
    assert cloud.member.compute.post(f"/servers/{server.id}/action", json={"os-stop": None}).status_code == 409
    assert cloud.admin.compute.delete(f"{path}/{migration.id}", microversion="2.96").status_code == 202
    after = cloud.after(server)
    assert (after.status, after.compute_host, after.progress) == ("ACTIVE", source, 0)
    assert cloud.migration(server).status == "cancelled"
    assert cloud.memory(server)[: len(memory)] == memory
    cloud.check_left_nothing(server, source)
    assert cloud.faults(server) == []
    cloud.ordered(server, "live_migration_cancel", "compute_live_migration_abort")


def until_counted(cloud: LiveCloud, path: str) -> dict[str, Any]:
    def counted() -> dict[str, Any]:
        answer = cloud.admin.compute.get(path, microversion="2.96")
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()["migration"]
        return found

    return until(counted, lambda found: found["memory_remaining_bytes"] is not None, "the counters")


def test_a_busy_guest_is_forced(cloud: LiveCloud) -> None:
    server = cloud.boot()
    source = cloud.host_of(server)
    cloud.busy(server)
    memory = cloud.memory(server)
    cloud.migrate_live(server)
    migration = cloud.becomes(server, "running")
    # Nothing is reported meanwhile: what is at both ends has a reason all the same.
    assert cloud.audit().disagreements == []
    path = f"/servers/{server.id}/migrations/{migration.id}/action"
    cloud.job_runs(server)
    answer = cloud.admin.compute.post(path, json={"force_complete": None}, microversion="2.96")
    assert answer.status_code == 202, answer.text
    after = cloud.after(server)
    assert after.compute_host == cloud.other(source)
    assert cloud.memory(server) == memory
    cloud.check_left_nothing(server, after.compute_host)
    cloud.ordered(server, "live_migration_force_complete", "compute_live_migration_force_complete")


def test_a_host_sends_one_guest_at_a_time(cloud: LiveCloud) -> None:
    first = cloud.boot("first")
    source = cloud.host_of(first)
    second = cloud.booted_on(source, "second")
    cloud.busy(first)
    memory = cloud.remember(second, "second")
    cloud.migrate_live(first)
    cloud.becomes(first, "running")
    cloud.migrate_live(second)
    cloud.becomes(second, "queued")
    path = f"/servers/{second.id}/migrations"
    assert [each["status"] for each in cloud.admin.compute.get(path, microversion="2.96").json()["migrations"]] == [
        "queued"
    ]
    # Before 2.65 only one that runs may be aborted.
    number = cloud.migration(second).id
    assert cloud.admin.compute.delete(f"{path}/{number}", microversion="2.64").status_code == 400
    cloud.admin.compute.delete(f"/servers/{first.id}/migrations/{cloud.migration(first).id}", microversion="2.96")
    assert cloud.after(first).compute_host == source
    assert cloud.after(second).compute_host == cloud.other(source)
    assert cloud.memory(second) == memory


def test_a_queued_live_migration_is_aborted(cloud: LiveCloud) -> None:
    first = cloud.boot("first")
    source = cloud.host_of(first)
    second = cloud.booted_on(source, "second")
    cloud.busy(first)
    cloud.migrate_live(first)
    cloud.becomes(first, "running")
    cloud.migrate_live(second)
    number = cloud.becomes(second, "queued").id
    path = f"/servers/{second.id}/migrations/{number}"
    assert cloud.admin.compute.delete(path, microversion="2.96").status_code == 202
    cloud.becomes(second, "cancelled")
    assert cloud.wait(second, "ACTIVE").compute_host == source
    cloud.admin.compute.delete(f"/servers/{first.id}/migrations/{cloud.migration(first).id}", microversion="2.96")
    cloud.after(first)
    for server in (first, second):
        cloud.check_left_nothing(server, source)
