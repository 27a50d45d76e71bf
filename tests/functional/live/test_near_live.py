"""A server goes to another cell, and its guest does not boot: its memory goes with it."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from causeway import errors
from causeway.clients.image import ImageClient
from causeway.compute.handover.near_live import NearLiveEndpoint
from causeway.context import admin_context
from causeway.model.outcomes import OperationToken, Snapshot
from causeway.model.states import PowerState
from causeway.store.api import migrations as store
from causeway.store.cell import instances
from causeway.virt.driver import MEMORY
from tests.functional.servers.moves_cloud import until

from .live_cloud import LiveCloud
from .test_live_refusals import refuse


def elsewhere(cloud: LiveCloud, server: Any) -> str:
    """A host of the other cell."""
    return "cell2-host1" if cloud.host_of(server).startswith("cell1") else "cell1-host1"


def booted(cloud: LiveCloud, **more: Any) -> tuple[Any, list[str]]:
    """A server that any host takes, with something in memory and on its disk."""
    server = cloud.boot(flavor="any.small", **more)
    memory = cloud.remember(server, "a line")
    cloud.driver(cloud.host_of(server)).guest_write(server.id, "on disk")
    return server, memory


def test_a_guest_keeps_its_memory_across_cells(cloud: LiveCloud) -> None:
    server, memory = booted(cloud)
    source, there = cloud.host_of(server), elsewhere(cloud, server)
    launched = cloud.show(server).launched_at
    after = cloud.migrated(server, host=there)
    assert (after.status, after.compute_host, after.launched_at) == ("ACTIVE", there, launched), cloud.migration(server)
    assert cloud.memory(server) == memory
    assert "on disk" in cloud.driver(there).guest_read(server.id)
    assert b"boot=2" not in cloud.driver(there).console_output(server.id)
    migration = cloud.migration(server)
    assert (migration.status, migration.migration_type) == ("completed", "live-migration")
    assert (migration.source_compute, migration.dest_compute) == (source, there)
    shown = store.get(cloud.parts.api_database, migration.uuid)
    assert shown.memory_processed_bytes == shown.memory_total_bytes and shown.memory_total_bytes
    cloud.check_left_nothing(server, there)
    assert cloud.temporary_images() == []
    assert cloud.driver(there).saved_memory(server.id) is None
    assert cloud.events(server, "live-migration") == [
        (name, "Success")
        for name in (
            "conductor_live_migrate_instance",
            "conductor_migrate_server",
            "compute_check_can_live_migrate_source",
            "compute_pre_live_migration",
            "compute_live_migration",
            "compute_wake_guest_at_destination",
            "compute_post_live_migration_at_destination",
            "compute_post_live_migration",
        )
    ]
    # And back, to the host where something of it was before.
    assert cloud.migrated(server, host=source).compute_host == source
    assert cloud.memory(server) == memory
    cloud.check_left_nothing(server, source)


@pytest.mark.parametrize("way", ["directly", "as images", "cut off"])
def test_memory_goes_directly_where_hosts_reach_one_another(
    cloud: LiveCloud, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    server, memory = booted(cloud)
    there, made = elsewhere(cloud, server), []
    works = ImageClient.create

    def create(*args: Any, **more: Any) -> Any:
        made.append(more["name"])
        return works(*args, **more)

    monkeypatch.setattr(ImageClient, "create", create)
    if way == "as images":
        cloud.option("direct", "never", "moves")
    elif way == "cut off":
        cloud.cut_offers()
    after = cloud.migrated(server, host=there)
    assert after.compute_host == there, cloud.migration(server)
    assert cloud.memory(server) == memory
    assert "on disk" in cloud.driver(there).guest_read(server.id)
    assert any("memory" in name for name in made) == (way != "directly"), made
    shown = store.get(cloud.parts.api_database, cloud.migration(server).uuid)
    assert shown.memory_processed_bytes == shown.memory_total_bytes and shown.memory_total_bytes
    kept = cloud.moves(server)[-1].data["offer"]
    assert kept["token"] == "" if way == "directly" else kept is None
    assert all(not compute.host.offers.servers() for compute in cloud.parts.computes.values())
    assert cloud.temporary_images() == []
    cloud.check_left_nothing(server, there)


def test_what_was_offered_of_memory_is_not_there_when_the_guest_continues_at_its_source(
    cloud: LiveCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, memory = booted(cloud)
    source, there = cloud.host_of(server), elsewhere(cloud, server)
    offers, offered = cloud.parts.computes[source].host.offers, []

    def fail(*_args: Any, **_more: Any) -> Any:
        offered.append(offers.servers())
        raise errors.GuestFailed("it does not wake")

    monkeypatch.setattr(cloud.driver(there), "wake", fail)
    works = cloud.driver(source).resume_woken

    def resume_woken(*args: Any, **more: Any) -> Any:
        assert offers.servers() == set()
        return works(*args, **more)

    monkeypatch.setattr(cloud.driver(source), "resume_woken", resume_woken)
    assert cloud.migrated(server, host=there).compute_host == source
    assert offered and {server.id} in offered
    assert cloud.memory(server) == memory
    cloud.check_left_nothing(server, source)


def test_a_server_may_be_resized_and_deleted_after_a_near_live_migration(cloud: LiveCloud) -> None:
    server, _memory = booted(cloud)
    cloud.migrated(server, host=elsewhere(cloud, server))
    cloud.resized(server, "any.medium")
    cloud.confirmed(server)
    cloud.admin.compute.delete_server(server.id)
    until(lambda: cloud.admin.compute.find_server(server.id), lambda found: found is None, "the server to go")
    assert cloud.audit().disagreements == []


@pytest.mark.parametrize("kind", ["image", "volume"])
def test_volumes_ports_and_swap_go_along(cloud: LiveCloud, kind: str) -> None:
    flavor = cloud.flavor("any.swapping", swap=64, ephemeral=1)
    server = cloud.boot(flavor=flavor) if kind == "image" else cloud.boot_from_volume(flavor_id=flavor)
    source, there, memory = cloud.host_of(server), elsewhere(cloud, server), cloud.remember(server, "a line")
    volume = cloud.volume()
    cloud.attach(server, volume)
    driver = cloud.driver(source)
    devices = driver.files.guests[server.id].devices()
    for device in devices:
        driver.guest_write(server.id, f"kept on {device}", device)
    after = cloud.migrated(server, host=there)
    assert after.compute_host == there, cloud.migration(server)
    assert cloud.memory(server) == memory
    assert list(cloud.driver(there).files.guests[server.id].devices()) == list(devices)
    for device in devices:
        assert f"kept on {device}" in cloud.driver(there).guest_read(server.id, device)
    assert {each["status"] for each in cloud.attachments(server)} == {"attached"}
    cloud.check_left_nothing(server, there)


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
    assert cloud.migrated(server).compute_host[:5] == source[:5]
    refuse(cloud, monkeypatch, *(name for name in cloud.parts.computes if name[:5] == source[:5]))
    after = cloud.migrated(server)
    assert after.compute_host[:5] != source[:5], cloud.migration(server)
    assert cloud.memory(server) == memory
    cloud.check_left_nothing(server, after.compute_host)


def test_who_may_not_move_to_other_cells_does_not_learn_what_is_there(cloud: LiveCloud) -> None:
    server, _memory = booted(cloud)
    there = elsewhere(cloud, server)
    policy = cloud.embedded.state.policy
    text = policy.read_text()
    try:
        policy.write_text(
            text.replace('migrate_live:cross_cell": "rule:context_is_admin"', 'migrate_live:cross_cell": "!"')
        )
        asks_until(cloud, server, there, f"Compute host {there} could not be found.")
    finally:
        policy.write_text(text)
        asks_until(cloud, server, there, "they must be copied along")


def asks_until(cloud: LiveCloud, server: Any, there: str, said: str) -> None:
    """The policy is read anew now and then. Nothing is begun meanwhile: local disks must be copied along."""
    until(
        lambda: cloud.migrate_live(server, host=there, block_migration=False).text,
        lambda text: said in text,
        f"the policy to be read, and the answer to be '{said}'",
    )


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"version": "2.67", "force": True}, "can't be forced"),
        ({"block_migration": False}, "they must be copied along"),
    ],
)
def test_what_can_not_be_asked_of_it(cloud: LiveCloud, more: dict[str, Any], said: str) -> None:
    server, _memory = booted(cloud)
    answer = cloud.migrate_live(server, host=elsewhere(cloud, server), **more)
    assert answer.status_code == 400 and said in answer.text, answer.text
    assert cloud.show(server).task_state is None


@pytest.mark.parametrize("method", ["save_memory", "wake", "begin_round", "destroy", "stash_disks"])
def test_all_is_undone_if_a_hypervisor_fails_before_the_pivot(
    cloud: LiveCloud, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """Before its pivot all is undone, and the guest continues where it was."""
    server, memory = booted(cloud)
    source, there = cloud.host_of(server), elsewhere(cloud, server)
    host = there if method == "wake" else source

    def fail(*_args: Any, **_more: Any) -> Any:
        raise errors.GuestFailed(f"{method} does not work")

    monkeypatch.setattr(cloud.driver(host), method, fail)
    after = cloud.migrated(server, host=there)
    monkeypatch.undo()
    if method == "begin_round":
        # Its disks travel while it stands still.
        assert (after.status, after.compute_host) == ("ACTIVE", there)
    else:
        assert (after.status, after.compute_host) == ("ACTIVE", source)
        assert cloud.migration(server).status == "failed"
        assert method in cloud.faults(server, source[:5])[-1].message
    assert cloud.memory(server) == memory
    cloud.check_left_nothing(server, after.compute_host)
    assert cloud.temporary_images() == []


def test_an_order_to_wake_that_comes_late_harms_no_guest(cloud: LiveCloud) -> None:
    """Though nobody remembers that it was carried out."""
    server, memory = booted(cloud)
    there = elsewhere(cloud, server)
    cloud.migrated(server, host=there)
    instance = instances.get(cloud.cell(there[:5]), server.id)
    sent = Snapshot(str(uuid.uuid4()), "raw", 1)
    outcome = NearLiveEndpoint(cloud.parts.computes[there].host).wake_guest_at_dest(
        admin_context(),
        token=OperationToken(str(uuid.uuid4()), str(uuid.uuid4()), 1, "WakeGuest"),
        instance=instance,
        block_devices=[],
        snapshot=sent,
        disks={MEMORY: sent},
    )
    assert outcome.power_state is PowerState.RUNNING
    assert cloud.memory(server) == memory
    cloud.check_left_nothing(server, there)


@pytest.mark.parametrize("method", ["begin_round", "save_memory", "stash_disks", "wake", "resume_woken"])
def test_the_audit_finds_a_reason_for_all_that_is_there_meanwhile(
    cloud: LiveCloud, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    server, _memory = booted(cloud)
    there = elsewhere(cloud, server)
    driver = cloud.driver(there if method in ("wake", "resume_woken") else cloud.host_of(server))
    found: list[Any] = []

    original = getattr(driver, method)

    def works(*args: Any, **more: Any) -> Any:
        result = original(*args, **more)
        found.append(cloud.audit().disagreements)
        return result

    monkeypatch.setattr(driver, method, works)
    assert cloud.migrated(server, host=there).compute_host == there
    assert found and not any(found), found


def test_a_guest_that_was_shut_down_is_not_moved(cloud: LiveCloud, monkeypatch: pytest.MonkeyPatch) -> None:
    server, _memory = booted(cloud)
    source = cloud.host_of(server)
    driver = cloud.driver(source)
    works = driver.save_memory

    def off(uuid: str) -> None:
        driver.power_off(uuid, 0)
        works(uuid)

    monkeypatch.setattr(driver, "save_memory", off)
    after = cloud.migrated(server, host=elsewhere(cloud, server))
    assert after.compute_host == source
    assert cloud.migration(server).status == "failed"
    cloud.check_left_nothing(server, source)


def test_a_near_live_migration_can_be_aborted_until_the_guest_continues(
    cloud: LiveCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At any moment before the guest continues elsewhere."""
    server, memory = booted(cloud)
    source, there = cloud.host_of(server), elsewhere(cloud, server)
    driver = cloud.driver(source)
    works = driver.save_memory

    def saved(uuid: str) -> None:
        works(uuid)
        migration = cloud.migration(server)
        assert migration.status == "running"
        cloud.admin.compute.delete(f"/servers/{server.id}/migrations/{migration.id}", microversion="2.96")

    monkeypatch.setattr(driver, "save_memory", saved)
    after = cloud.migrated(server, host=there)
    assert (after.status, after.compute_host) == ("ACTIVE", source)
    assert cloud.migration(server).status == "cancelled"
    assert cloud.memory(server) == memory
    cloud.check_left_nothing(server, source)
    assert cloud.temporary_images() == []


def test_a_guest_is_woken_again_if_its_hypervisor_is_killed_before_resuming(
    cloud: LiveCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guest is woken once more: its memory was not used yet."""
    server, memory = booted(cloud)
    there = elsewhere(cloud, server)
    driver = cloud.driver(there)
    works = driver.inspect
    killed: list[str] = []

    def look(uuid: str) -> Any:
        facts = works(uuid)
        if facts.power_state is PowerState.PAUSED and cloud.moves(server)[-1].pivoted and not killed:
            killed.append(uuid)
            driver.power_off(uuid, 0)
            return works(uuid)
        return facts

    monkeypatch.setattr(driver, "inspect", look)
    after = cloud.migrated(server, host=there)
    assert killed
    assert (after.status, after.compute_host) == ("ACTIVE", there)
    assert cloud.memory(server) == memory
    cloud.check_left_nothing(server, there)
