"""What is refused, and what becomes of a live migration that a host refuses."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from causeway.errors import ClaimRefused
from causeway.store.cell import instances
from tests.functional.servers.broken_hosts import disks_of

from .live_cloud import LiveCloud, until

CLOUD: dict[str, Any] = {
    "hosts_per_cell": 3,
    "overrides": {"moves": {"first_pause": 0.05, "stuck_retry_interval": 0.2}},
}


def others(cloud: LiveCloud, host: str) -> list[str]:
    return sorted(name for name in cloud.parts.computes if name[:5] == host[:5] and name != host)


def refuse(cloud: LiveCloud, monkeypatch: pytest.MonkeyPatch, *hosts: str, times: int = 99) -> list[str]:
    """These hosts' hypervisors take no guest, so often; returns who refused."""
    asked: list[str] = []
    for name in hosts:

        def refused(_source: Any, name: str = name) -> None:
            if len(asked) == times:
                return
            asked.append(name)
            raise ClaimRefused("The processor is another one.", details=name)

        monkeypatch.setattr(cloud.driver(name), "check_live_target", refused)
    return asked


def message(answer: Any) -> tuple[int, str]:
    return answer.status_code, next(iter(answer.json().values()))["message"]


def test_a_host_that_refuses_is_passed_over_for_the_next(cloud: LiveCloud, monkeypatch: pytest.MonkeyPatch) -> None:
    server = cloud.boot()
    source = cloud.host_of(server)
    asked = refuse(cloud, monkeypatch, *others(cloud, source), times=1)
    after = cloud.migrated(server)
    assert len(asked) == 1
    assert after.compute_host in set(others(cloud, source)) - set(asked)
    assert cloud.migration(server).dest_compute == after.compute_host
    cloud.check_left_nothing(server, after.compute_host)
    results = [
        result
        for event, result in cloud.events(server, "live-migration")
        if event == "compute_check_can_live_migrate_destination"
    ]
    assert results == ["Error", "Success"]


@pytest.mark.parametrize("stashed", [True, False], ids=["stashed disks", "disks"])
def test_a_host_that_has_something_of_the_server_refuses_it(cloud: LiveCloud, *, stashed: bool) -> None:
    server = cloud.boot()
    source = cloud.host_of(server)
    target = others(cloud, source)[0]
    left = disks_of(cloud.parts.state.host(target), server.id, stashed=stashed)
    left.mkdir()
    assert cloud.migrate_live(server, host=target).status_code == 202
    assert cloud.after(server).compute_host == source
    assert cloud.migration(server).status in ("error", "failed")
    left.rmdir()
    cloud.check_left_nothing(server, source)


def test_before_2_25_a_host_must_have_room_as_its_user_says(cloud: LiveCloud) -> None:
    source = cloud.host_of(server := cloud.boot(flavor=cloud.flavor("live.room", gen=1, disk=20)))
    for name in others(cloud, source):
        # Less than the disk may come to have, more than it has.
        cloud.driver(name)._hardware = dataclasses.replace(cloud.driver(name)._hardware, local_gb=10)
    try:
        asked = {"host": others(cloud, source)[0], "block_migration": True}
        answer = cloud.migrate_live(server, version="2.24", **asked, disk_over_commit=False)
        assert answer.status_code == 400 and "no room for the server's disks" in message(answer)[1]
        after = cloud.after(server)
        assert after.compute_host == source and cloud.migration(server).status == "error"
        cloud.check_left_nothing(server, source)
        # From 2.25 on nobody says anything, and as in Nova nobody looks.
        assert cloud.migrated(server, version="2.24", **asked, disk_over_commit=True).compute_host != source
        assert cloud.migrated(server, version="2.25", host=source, block_migration=True).compute_host == source
        assert cloud.migrated(server, version="2.25", **asked).compute_host != source
    finally:
        for name in cloud.parts.computes:
            cloud.driver(name)._hardware = dataclasses.replace(cloud.driver(name)._hardware, local_gb=4096)


def test_no_host_is_left(cloud: LiveCloud, monkeypatch: pytest.MonkeyPatch) -> None:
    server = cloud.boot()
    source, memory = cloud.host_of(server), cloud.remember(server, "a line")
    asked = refuse(cloud, monkeypatch, *others(cloud, source))
    after = cloud.migrated(server)
    assert (after.status, after.compute_host) == ("ACTIVE", source)
    assert sorted(asked) == others(cloud, source)
    assert cloud.migration(server).status == "error"
    assert cloud.memory(server) == memory
    cloud.check_left_nothing(server, source)
    assert "No valid host" in cloud.action(server, "live-migration").message
    # Before 2.34 its client gets an answer.
    answer = cloud.migrate_live(server, version="2.33")
    assert answer.status_code == 400 and "No valid host" in message(answer)[1]
    cloud.settle()
    cloud.option("migrate_max_retries", 0, "conductor")
    asked.clear()
    cloud.migrated(server)
    assert len(asked) == 1
    cloud.check_left_nothing(server, source)


def test_a_host_that_is_asked_for_is_the_only_target(cloud: LiveCloud, monkeypatch: pytest.MonkeyPatch) -> None:
    server = cloud.boot()
    source = cloud.host_of(server)
    first, second = others(cloud, source)
    assert cloud.migrated(server, host=second).compute_host == second
    assert cloud.migrated(server, host=first, version="2.33", block_migration=True, force=True).compute_host == first
    old = {"block_migration": "true", "disk_over_commit": False}
    assert cloud.migrated(server, host=source, version="2.24", **old).compute_host == source
    asked = refuse(cloud, monkeypatch, first)
    cloud.migrated(server, host=first)
    assert asked == [first] and cloud.migration(server).status == "error"
    cloud.check_left_nothing(server, source)


@pytest.mark.parametrize(
    ("host", "said"),
    [
        ("nowhere", "Compute host nowhere could not be found."),
        ("own", "current host"),
        ("bad/name", "does not match"),
    ],
)
def test_a_host_that_will_not_do(cloud: LiveCloud, host: str, said: str) -> None:
    server = cloud.boot()
    source = cloud.host_of(server)
    answer = cloud.migrate_live(server, host=source if host == "own" else host)
    assert answer.status_code == 400 and said in answer.text, answer.text
    assert cloud.show(server).task_state is None


@pytest.mark.parametrize(
    ("version", "body", "status"),
    [
        ("2.1", {"host": None, "block_migration": True, "disk_over_commit": "no"}, 202),
        ("2.1", {"host": None, "block_migration": True}, 400),
        ("2.24", {"host": None, "block_migration": "auto", "disk_over_commit": False}, 400),
        ("2.25", {"host": None, "block_migration": "auto", "disk_over_commit": False}, 400),
        ("2.25", {"host": None, "block_migration": "auto"}, 202),
        ("2.25", {"host": None}, 400),
        ("2.25", {"block_migration": "auto"}, 400),
        ("2.29", {"host": None, "block_migration": "auto", "force": True}, 400),
        ("2.30", {"host": None, "block_migration": "auto", "force": True}, 400),
        ("2.67", {"host": None, "block_migration": "auto", "force": False}, 202),
        ("2.68", {"host": None, "block_migration": "auto", "force": False}, 400),
        ("2.96", {"host": None, "block_migration": "auto"}, 202),
        ("2.96", {"host": None, "block_migration": "perhaps"}, 400),
    ],
)
def test_bodies_are_taken_or_refused_by_version(
    cloud: LiveCloud, version: str, body: dict[str, Any], status: int
) -> None:
    server = cloud.boot()
    answer = cloud.admin.compute.post(
        f"/servers/{server.id}/action", json={"os-migrateLive": body}, microversion=version
    )
    assert answer.status_code == status, answer.text
    if status == 202:
        cloud.after(server)
    assert cloud.audit().disagreements == []


def test_block_migration_must_fit_the_disks(cloud: LiveCloud) -> None:
    local, volume = cloud.boot("local"), cloud.boot_from_volume("volume")
    assert cloud.migrate_live(local, version="2.33", block_migration=False).status_code == 400
    assert cloud.migrate_live(volume, version="2.33", block_migration=True).status_code == 400
    cloud.after(local)
    assert cloud.migrated(volume, block_migration=False).status == "ACTIVE"
    assert cloud.migration(volume).status == "completed"


def test_a_server_in_a_wrong_state_is_refused(cloud: LiveCloud) -> None:
    server = cloud.boot()
    cloud.member.compute.stop_server(server.id)
    cloud.wait(server, "SHUTOFF")
    answer = cloud.migrate_live(server)
    assert message(answer) == (409, f"Cannot 'os-migrateLive' instance {server.id} while it is in vm_state stopped")
    assert cloud.migrate_live(server, user=cloud.member).status_code == 403
    missing = cloud.admin.compute.post(
        f"/servers/{cloud.image_id}/action",
        json={"os-migrateLive": {"host": None, "block_migration": "auto"}},
        microversion="2.96",
    )
    assert missing.status_code == 404


@pytest.mark.parametrize("specs", [{"accel:device_profile": "one"}, {"hw:mem_encryption": "true"}])
def test_what_can_not_be_taken_along(cloud: LiveCloud, specs: dict[str, str]) -> None:
    server = cloud.boot()
    database = cloud.cell("cell1")
    record = instances.get(database, server.id)
    record.flavor.extra_specs.update(specs)
    instances.update(database, server.id, flavor=record.flavor)
    answer = cloud.migrate_live(server)
    assert answer.status_code == 400 and "not supported" in message(answer)[1]


def test_what_is_asked_of_a_migration_that_is_not_there(cloud: LiveCloud) -> None:
    server = cloud.boot()
    path, compute = f"/servers/{server.id}/migrations", cloud.admin.compute
    force = {"json": {"force_complete": None}, "microversion": "2.96"}
    # It is not being migrated.
    assert compute.post(f"{path}/1/action", **force).status_code == 409
    assert compute.delete(f"{path}/999999", microversion="2.96").status_code == 404
    cloud.migrated(server)
    number = cloud.migration(server).id
    assert compute.get(path, microversion="2.96").json() == {"migrations": []}
    assert message(compute.get(f"{path}/{number}", microversion="2.96"))[1].endswith("is not in progress.")
    assert "not found" in message(compute.get(f"{path}/999999", microversion="2.96"))[1]
    assert compute.delete(f"{path}/{number}", microversion="2.96").status_code == 409
    cloud.busy(server)
    cloud.migrate_live(server)
    running = cloud.becomes(server, "running")
    assert compute.post(f"{path}/999999/action", **force).status_code == 400
    refused = compute.post(f"{path}/{number}/action", **force)
    assert refused.status_code == 400 and "force complete" in message(refused)[1]
    late = compute.delete(f"{path}/{number}", microversion="2.96")
    assert late.status_code == 400 and "abort live migration" in message(late)[1]
    assert compute.delete(f"{path}/{running.id}", microversion="2.96").status_code == 202
    cloud.after(server)


def test_a_server_that_is_deleted_meanwhile_is_gone_from_both_hosts(cloud: LiveCloud) -> None:
    server = cloud.boot_from_volume()
    cloud.busy(server)
    cloud.migrate_live(server)
    cloud.becomes(server, "running")
    cloud.option("live_migration_monitor_interval", 0.0, "libvirt")
    cloud.member.compute.delete_server(server.id)
    until(lambda: cloud.admin.compute.find_server(server.id), lambda found: found is None, "the server to go")
    cloud.settle()
    assert cloud.hosts_of(server) == {}
    assert cloud.allocations(server.id) == {}
    assert cloud.audit().disagreements == []


def test_a_migration_that_takes_too_long_ends_as_configured(cloud: LiveCloud) -> None:
    server = cloud.boot()
    source = cloud.host_of(server)
    cloud.busy(server)
    cloud.option("live_migration_completion_timeout", 1, "libvirt")
    after = cloud.migrated(server)
    assert after.compute_host == source and cloud.migration(server).status == "cancelled"
    cloud.check_left_nothing(server, source)
    cloud.option("live_migration_timeout_action", "force_complete", "libvirt")
    after = cloud.migrated(server)
    assert after.compute_host != source and cloud.migration(server).status == "completed"
    cloud.check_left_nothing(server, after.compute_host)


@pytest.mark.parametrize("method", ["prepare_live_target", "live_migrate"])
def test_a_hypervisor_that_breaks_costs_the_guest_nothing(cloud: LiveCloud, method: str) -> None:
    """2044235, 1889108 on Launchpad."""
    server = cloud.boot_from_volume()
    source, memory = cloud.host_of(server), cloud.remember(server, "a line")
    cloud.break_driver(list(cloud.parts.computes), method)
    after = cloud.migrated(server)
    assert (after.status, after.compute_host) == ("ACTIVE", source)
    assert cloud.migration(server).status == "failed"
    assert cloud.memory(server) == memory
    assert {each["status"] for each in cloud.attachments(server)} == {"attached"}
    cloud.check_left_nothing(server, source)
    cloud.heal()
    assert cloud.migrated(server).compute_host != source
