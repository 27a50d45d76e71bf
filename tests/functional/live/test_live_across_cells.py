"""A guest goes to a host of another cell without stopping: their hypervisors reach one another."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from causeway import errors
from causeway.rpc.transport import Outgoing, Verdict
from causeway.store.api import migrations as store
from causeway.virt.simulated.driver import SimulatedDriver

from .live_cloud import ONE_NETWORK, PATIENCE, LiveCloud, until
from .test_live_migration import until_counted
from .test_live_refusals import refuse
from .test_near_live import booted, elsewhere

CLOUD: dict[str, Any] = {"overrides": {"simulated": ONE_NETWORK}}


def recipes(cloud: LiveCloud, server: Any) -> list[str]:
    return [move.recipe for move in cloud.moves(server)]


def test_a_guest_continues_in_another_cell(cloud: LiveCloud) -> None:
    server, memory = booted(cloud)
    source, there = cloud.host_of(server), elsewhere(cloud, server)
    launched = cloud.show(server).launched_at
    after = cloud.migrated(server, host=there)
    assert (after.status, after.compute_host, after.launched_at) == ("ACTIVE", there, launched), cloud.migration(server)
    assert recipes(cloud, server)[-1] == "live_migration"
    assert cloud.memory(server) == memory
    assert "on disk" in cloud.driver(there).guest_read(server.id)
    assert b"boot=2" not in cloud.driver(there).console_output(server.id)
    migration = cloud.migration(server)
    assert (migration.status, migration.migration_type) == ("completed", "live-migration")
    assert (migration.source_compute, migration.dest_compute) == (source, there)
    shown = store.get(cloud.parts.api_database, migration.uuid)
    assert shown.memory_total_bytes and shown.disk_total_bytes
    cloud.check_left_nothing(server, there)
    assert cloud.temporary_images() == []
    assert cloud.events(server, "live-migration") == [
        (name, "Success")
        for name in (
            "conductor_live_migrate_instance",
            "conductor_migrate_server",
            "compute_check_can_live_migrate_source",
            "compute_check_can_live_migrate_destination",
            "compute_pre_live_migration",
            "compute_post_live_migration_at_destination",
            "compute_post_live_migration",
        )
    ]
    # And back, to the host where something of it was before.
    assert cloud.migrated(server, host=source).compute_host == source
    assert cloud.memory(server) == memory
    cloud.check_left_nothing(server, source)


def test_a_server_may_be_resized_and_deleted_after_a_live_migration_across_cells(cloud: LiveCloud) -> None:
    server, _memory = booted(cloud)
    cloud.migrated(server, host=elsewhere(cloud, server))
    cloud.resized(server, "any.medium")
    cloud.confirmed(server)
    cloud.admin.compute.delete_server(server.id)
    until(lambda: cloud.admin.compute.find_server(server.id), lambda found: found is None, "the server to go")
    assert cloud.audit().disagreements == []


@pytest.mark.parametrize("kind", ["image", "volume"])
def test_volumes_ports_and_swap_go_along(cloud: LiveCloud, kind: str) -> None:
    flavor = cloud.flavor("live.swapping", swap=64, ephemeral=1)
    server = cloud.boot(flavor=flavor) if kind == "image" else cloud.boot_from_volume(flavor_id=flavor)
    source, there, memory = cloud.host_of(server), elsewhere(cloud, server), cloud.remember(server, "a line")
    volume = cloud.volume()
    cloud.attach(server, volume)
    before = cloud.attachments(server)
    driver = cloud.driver(source)
    devices = driver.files.guests[server.id].devices()
    for device in devices:
        driver.guest_write(server.id, f"kept on {device}", device)
    after = cloud.migrated(server, host=there)
    assert after.compute_host == there, cloud.migration(server)
    assert recipes(cloud, server)[-1] == "live_migration"
    assert cloud.memory(server) == memory
    assert list(cloud.driver(there).files.guests[server.id].devices()) == list(devices)
    for device in devices:
        assert f"kept on {device}" in cloud.driver(there).guest_read(server.id, device)
    attachments = cloud.attachments(server)
    assert len(attachments) == len(before)
    assert not {each["id"] for each in attachments} & {each["id"] for each in before}
    assert {each["status"] for each in attachments} == {"attached"}
    cloud.check_left_nothing(server, there)
    cloud.detach(server, volume)
    assert cloud.volume_becomes(volume, "available").status == "available"


def test_a_paused_guest_stays_paused(cloud: LiveCloud) -> None:
    server, memory = booted(cloud)
    there = elsewhere(cloud, server)
    cloud.admin.compute.pause_server(server)
    cloud.wait(server, "PAUSED")
    after = cloud.migrated(server, host=there)
    assert (after.status, after.compute_host) == ("PAUSED", there), cloud.migration(server)
    cloud.admin.compute.unpause_server(server)
    cloud.wait(server, "ACTIVE")
    assert cloud.memory(server) == memory
    cloud.check_left_nothing(server, there)


def test_the_cell_is_left_only_if_no_host_of_it_will_do(cloud: LiveCloud, monkeypatch: pytest.MonkeyPatch) -> None:
    server, memory = booted(cloud)
    source = cloud.host_of(server)
    refuse(cloud, monkeypatch, *(name for name in cloud.parts.computes if name[:5] == source[:5]))
    after = cloud.migrated(server)
    assert after.compute_host[:5] != source[:5], cloud.migration(server)
    # The first one was rolled back.
    assert recipes(cloud, server) == ["live_migration", "live_migration"]
    assert cloud.memory(server) == memory
    cloud.check_left_nothing(server, after.compute_host)


def test_counters_are_shown_and_a_busy_guest_is_aborted(cloud: LiveCloud) -> None:
    server, _memory = booted(cloud)
    source = cloud.host_of(server)
    cloud.busy(server)
    memory = cloud.memory(server)
    cloud.option("live_migration_monitor_interval", 0.0, "libvirt")
    assert cloud.migrate_live(server, host=elsewhere(cloud, server)).status_code == 202
    migration = cloud.becomes(server, "running")
    assert cloud.show(server).status == "MIGRATING"
    path = f"/servers/{server.id}/migrations"
    shown = until_counted(cloud, f"{path}/{migration.id}")
    assert shown["memory_total_bytes"] == 2 * shown["memory_remaining_bytes"]
    until(lambda: cloud.show(server).progress, lambda progress: progress == 50, "the server's progress")
    assert [each["id"] for each in cloud.admin.compute.get(path, microversion="2.96").json()["migrations"]] == [
        migration.id
    ]
    assert cloud.audit().disagreements == []
    assert cloud.admin.compute.delete(f"{path}/{migration.id}", microversion="2.96").status_code == 202
    after = cloud.after(server)
    assert (after.status, after.compute_host, after.progress) == ("ACTIVE", source, 0)
    assert cloud.migration(server).status == "cancelled"
    assert cloud.memory(server) == memory
    cloud.check_left_nothing(server, source)
    assert cloud.faults(server, source[:5]) == []
    cloud.ordered(server, "live_migration_cancel", "compute_live_migration_abort")


def test_a_busy_guest_is_forced(cloud: LiveCloud) -> None:
    server, _memory = booted(cloud)
    there = elsewhere(cloud, server)
    cloud.busy(server)
    memory = cloud.memory(server)
    cloud.migrate_live(server, host=there)
    migration = cloud.becomes(server, "running")
    cloud.job_runs(server)
    path = f"/servers/{server.id}/migrations/{migration.id}/action"
    answer = cloud.admin.compute.post(path, json={"force_complete": None}, microversion="2.96")
    assert answer.status_code == 202, answer.text
    assert cloud.after(server).compute_host == there
    assert cloud.memory(server) == memory
    cloud.check_left_nothing(server, there)
    cloud.ordered(server, "live_migration_force_complete", "compute_live_migration_force_complete")


def test_an_order_whose_answer_comes_after_the_move_is_in_the_history(
    cloud: LiveCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, _memory = booted(cloud)
    there = elsewhere(cloud, server)
    cloud.busy(server)
    cloud.migrate_live(server, host=there)
    migration = cloud.becomes(server, "running")
    cloud.job_runs(server)
    moved = threading.Event()

    def on_reply(message: Outgoing) -> Verdict:
        if message.method == "live_migration_force_complete":
            assert moved.wait(PATIENCE)
        return Verdict.DELIVER

    monkeypatch.setattr(cloud.embedded.around.transports, "on_reply", on_reply)
    path = f"/servers/{server.id}/migrations/{migration.id}/action"
    assert cloud.admin.compute.post(path, json={"force_complete": None}, microversion="2.96").status_code == 202
    assert cloud.after(server).compute_host == there
    moved.set()
    cloud.ordered(server, "live_migration_force_complete", "compute_live_migration_force_complete")


def test_a_crash_dump_that_fails_behind_the_move_leaves_its_fault_with_the_server(
    cloud: LiveCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, _memory = booted(cloud)
    there = elsewhere(cloud, server)
    began, moved = threading.Event(), threading.Event()

    def fail(*_: Any) -> None:
        began.set()
        raise errors.GuestFailed("The guest took no interrupt.")

    def on_reply(message: Outgoing) -> Verdict:
        if message.method == "trigger_crash_dump":
            assert moved.wait(PATIENCE)
        return Verdict.DELIVER

    monkeypatch.setattr(SimulatedDriver, "trigger_crash_dump", fail)
    monkeypatch.setattr(cloud.embedded.around.transports, "on_reply", on_reply)
    path = f"/servers/{server.id}/action"
    assert cloud.member.compute.post(path, json={"trigger_crash_dump": None}, microversion="2.96").status_code == 202
    assert began.wait(PATIENCE)
    cloud.migrate_live(server, host=there)
    assert cloud.after(server).compute_host == there
    moved.set()
    until(lambda: cloud.faults(server, there[:5]), lambda found: bool(found), "the fault")
    assert [fault.message for fault in cloud.faults(server, there[:5])] == ["The guest took no interrupt."]
    assert cloud.events(server, "trigger_crash_dump") == [("compute_trigger_crash_dump", "Error")]


def test_a_live_migration_waits_while_its_source_has_as_many_as_it_may(cloud: LiveCloud) -> None:
    """Whether guests go to a host of their cell or of another one, only so many leave a host at the same time."""
    first, _memory = booted(cloud)
    source, there = cloud.host_of(first), elsewhere(cloud, first)
    second = cloud.booted_on(source, "second", flavor="any.small")
    cloud.busy(first)
    cloud.migrate_live(first, host=there)
    cloud.becomes(first, "running")
    cloud.migrate_live(second, host=there)
    cloud.becomes(second, "queued")
    cloud.admin.compute.delete(f"/servers/{first.id}/migrations/{cloud.migration(first).id}", microversion="2.96")
    assert cloud.after(first).compute_host == source
    assert cloud.after(second).compute_host == there
    cloud.check_left_nothing(second, there)


@pytest.mark.parametrize("where", ["never direct", "another network", "the check at the source"])
def test_hosts_that_do_not_reach_one_another_go_near_live(
    cloud: LiveCloud, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    server, memory = booted(cloud)
    source, there = cloud.host_of(server), elsewhere(cloud, server)
    if where == "never direct":
        cloud.option("direct", "never", "moves")
    elif where == "another network":
        monkeypatch.setattr(cloud.driver(there), "live_network", "apart")
    else:
        monkeypatch.setattr(cloud.driver(source), "supports_live_migration", False)
    after = cloud.migrated(server, host=there)
    assert (after.status, after.compute_host) == ("ACTIVE", there), cloud.migration(server)
    assert recipes(cloud, server)[-1] == "near_live_migration"
    assert cloud.memory(server) == memory
    cloud.check_left_nothing(server, there)


def test_an_alternate_that_can_not_be_reached(cloud: LiveCloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first choice refuses after it was reached, and no other one is: the guest goes near-live."""
    server, memory = booted(cloud)
    source = cloud.host_of(server)
    here = [name for name in cloud.parts.computes if name[:5] == source[:5]]
    others = [name for name in cloud.parts.computes if name[:5] != source[:5]]
    refuse(cloud, monkeypatch, *here)
    refused: list[str] = []

    def refusing(name: str, works: Any) -> Any:
        def checked(*args: Any, **more: Any) -> Any:
            if not refused:
                refused.append(name)
                for other in others:
                    monkeypatch.setattr(cloud.driver(other), "live_network", "apart")
                raise errors.ClaimRefused("It has no room.")
            return works(*args, **more)

        return checked

    for name in others:
        host = cloud.parts.computes[name].host
        monkeypatch.setattr(host.driver, "volume_connector", refusing(name, host.driver.volume_connector))
    after = cloud.migrated(server)
    assert refused and (after.status, after.compute_host in others) == ("ACTIVE", True), cloud.migration(server)
    assert recipes(cloud, server)[-2:] == ["live_migration", "near_live_migration"]
    assert cloud.memory(server) == memory
    cloud.check_left_nothing(server, after.compute_host)


@pytest.mark.parametrize("method", ["prepare_live_target", "live_migrate"])
def test_a_guest_notices_no_hypervisor_that_fails(
    cloud: LiveCloud, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """The guest never noticed."""
    server, memory = booted(cloud)
    cloud.attach(server, cloud.volume())
    source, there = cloud.host_of(server), elsewhere(cloud, server)

    def fail(*_args: Any, **_more: Any) -> Any:
        raise errors.GuestFailed(f"{method} does not work")

    monkeypatch.setattr(cloud.driver(there if method == "prepare_live_target" else source), method, fail)
    after = cloud.migrated(server, host=there)
    assert (after.status, after.compute_host) == ("ACTIVE", source)
    assert cloud.migration(server).status == "failed"
    assert method in cloud.faults(server, source[:5])[-1].message
    assert cloud.memory(server) == memory
    assert {each["status"] for each in cloud.attachments(server)} == {"attached"}
    cloud.check_left_nothing(server, source)


def test_an_error_of_the_hypervisor_decides_nothing(cloud: LiveCloud, monkeypatch: pytest.MonkeyPatch) -> None:
    server, memory = booted(cloud)
    source, there = cloud.host_of(server), elsewhere(cloud, server)
    works = cloud.driver(source).live_migrate

    def migrate(*args: Any, **more: Any) -> None:
        works(*args, **more)
        raise errors.GuestFailed("The connection was lost.")

    monkeypatch.setattr(cloud.driver(source), "live_migrate", migrate)
    after = cloud.migrated(server, host=there)
    assert (after.status, after.compute_host) == ("ACTIVE", there)
    assert cloud.migration(server).status == "completed"
    assert cloud.memory(server) == memory
    cloud.check_left_nothing(server, there)


@pytest.mark.parametrize("method", ["prepare_live_target", "live_migrate", "inspect", "destroy"])
def test_the_audit_finds_a_reason_for_all_that_is_there_meanwhile(
    cloud: LiveCloud, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    server, _memory = booted(cloud)
    there = elsewhere(cloud, server)
    driver = cloud.driver(there if method in ("prepare_live_target", "inspect") else cloud.host_of(server))
    found: list[Any] = []
    original = getattr(driver, method)

    def works(*args: Any, **more: Any) -> Any:
        result = original(*args, **more)
        with monkeypatch.context() as plain:
            plain.setattr(driver, method, original)
            found.append(cloud.audit().disagreements)
        return result

    monkeypatch.setattr(driver, method, works)
    assert cloud.migrated(server, host=there).compute_host == there
    assert found and not any(found), found


def test_a_guest_whose_image_is_gone_goes_near_live(cloud: LiveCloud) -> None:
    """Its target can't make the disk that the hypervisor would fill."""
    image = cloud.admin.image.create_image(name="short-lived", disk_format="raw", container_format="bare", data=b"base")
    image = cloud.admin.image.update_image(image, visibility="public")
    server, memory = booted(cloud, image_id=image.id)
    there = elsewhere(cloud, server)
    cloud.admin.image.delete_image(image.id)
    after = cloud.migrated(server, host=there)
    assert (after.status, after.compute_host) == ("ACTIVE", there), cloud.migration(server)
    assert recipes(cloud, server)[-2:] == ["live_migration", "near_live_migration"]
    assert cloud.memory(server) == memory
    assert "on disk" in cloud.driver(there).guest_read(server.id)
    cloud.check_left_nothing(server, there)
