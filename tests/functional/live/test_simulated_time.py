"""Simulated guests that write all the time are moved over links of a given speed: what takes hours is over in seconds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from causeway.embedded.cloud import EmbeddedCloud
from causeway.moves import reach
from causeway.rpc.transport import Outgoing, Verdict
from causeway.store.api import migrations as store
from tests.functional.servers.moves_cloud import PATIENCE
from tests.functional.servers.operations.test_watched_operations import operations

from .live_cloud import LiveCloud

pytestmark = pytest.mark.embedded("gives links and guests other speeds")

MIB, GIB, HOUR = 1 << 20, 1 << 30, 3600.0
GIGABIT = 1e9 / 8
# What others on this machine may take of the time that is not simulated.
SLACK = 120.0


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCloud]:
    folder = Path(tmp_path_factory.mktemp("cloud"))
    overrides = {"simulated": {"clock": str(folder / "clock"), "clock_speed": 20000.0, "local_gb": 10000}}
    cloud = EmbeddedCloud(folder, port=0, cells=2, hosts_per_cell=2, overrides=overrides)
    cloud.start()
    yield cloud
    cloud.stop()


@pytest.fixture(autouse=True)
def slow_links(cloud: LiveCloud) -> Iterator[None]:
    set_links(cloud, GIGABIT)
    yield
    set_links(cloud, 0.0)


def set_links(cloud: LiveCloud, speed: float, latency: float = 0.0) -> None:
    for name in cloud.parts.computes:
        link = cloud.driver(name).link
        link.speed, link.latency = speed, latency


def now(cloud: LiveCloud) -> float:
    found: float = cloud.driver("cell1-host1").link.clock.time()
    return found


def booted(
    cloud: LiveCloud, name: str, gen: int | None = None, *, ram: int = 128, disk: int = 1, **habits: float
) -> Any:
    """A server whose guest does that all the time; ``habits``: data in GiB, disk_rate and memory_rate in MiB a second."""
    flavor = cloud.flavor(name, gen=gen, ram=ram, disk=disk)
    specs = {f"simulated:{habit}": str(value) for habit, value in habits.items()}
    cloud.admin.compute.create_flavor_extra_specs(flavor, specs)
    return cloud.boot(name, flavor=flavor)


def writes(cloud: LiveCloud, server: Any) -> int:
    """How often its guest has written, wherever it is; fails if anything of that is lost."""
    found: int = cloud.driver(cloud.host_of(server)).guest_written(server.id)
    return found


def stood_still(cloud: LiveCloud, server: Any) -> float:
    found = cloud.driver(cloud.host_of(server)).guest_stood_still(server.id)
    assert found is not None
    return found


def migrated_cold(cloud: LiveCloud, server: Any) -> Any:
    """Its move; the server waits for its confirmation."""
    before = cloud.host_of(server)
    cloud.admin.compute.migrate_server(server.id)
    cloud.wait(server, "VERIFY_RESIZE")
    cloud.settle()
    assert cloud.host_of(server) != before
    return cloud.moves(server)[-1]


def while_reporting(cloud: LiveCloud, look: Callable[[], None]) -> None:
    """``look`` is called in the middle of transfers, when hosts report how far they are."""

    def on_send(message: Outgoing) -> Verdict:
        if message.method in ("report_progress", "report_live_progress"):
            look()
        return Verdict.DELIVER

    cloud.parts.around.transports.on_send = on_send


def test_eight_tebibytes_go_over_a_gigabit_link_in_hours_that_nobody_waits_for(cloud: LiveCloud) -> None:
    server = booted(cloud, "8 TiB", gen=1, disk=8192, data=8000.0, disk_rate=1.0)
    shown: list[tuple[int, int | None]] = []

    def look() -> None:
        (before,) = operations(cloud, server)
        path = f"/servers/{server.id}/migrations"
        (migration,) = cloud.admin.compute.get(path, microversion="2.96").json()["migrations"]
        (operation,) = operations(cloud, server)
        # Another report may have come between two of the answers.
        assert migration["causeway:bytes_total"] in (before["bytes_total"], operation["bytes_total"])
        if operation["round"] == 1 and operation["bytes_done"]:
            shown.append((operation["bytes_total"], operation["seconds_left"]))
            assert migration["causeway:seconds_left"] is not None

    while_reporting(cloud, look)
    began, before = now(cloud), writes(cloud, server)
    move = migrated_cold(cloud, server)
    took = now(cloud) - began
    assert 8000 * GIB / GIGABIT <= took < 8000 * GIB / GIGABIT + 2 * HOUR
    assert move.data["warm"]["sent"] >= 8000 * GIB
    # As it was shown meanwhile: bytes as those of the disk, and how many hours it takes yet.
    assert shown and max(total for total, _left in shown) > 7900 * GIB
    assert max(left or 0 for _total, left in shown) > 15 * HOUR
    assert stood_still(cloud, server) < SLACK
    assert writes(cloud, server) - before >= 17 * HOUR * MIB / 4096
    cloud.confirmed(server)


def test_rounds_end_when_one_was_short(cloud: LiveCloud) -> None:
    cloud.option("warm_round_seconds", 60.0, "moves")
    server = booted(cloud, "converges", gen=1, disk=200, data=100.0, disk_rate=5.0)
    before = writes(cloud, server)
    move = migrated_cold(cloud, server)
    # 14 minutes, in which it writes for 40 seconds' worth of the link; that round is short enough.
    assert move.data["warm"]["rounds"] == 2
    assert 100 * GIB < move.data["warm"]["sent"] < 105 * GIB
    assert stood_still(cloud, server) < SLACK
    assert writes(cloud, server) > before
    cloud.reverted(server)
    assert writes(cloud, server) >= before


def test_a_guest_that_writes_more_than_the_link_takes_is_off_for_the_rest(cloud: LiveCloud) -> None:
    set_links(cloud, 100.0 * MIB)
    server = booted(cloud, "diverges", gen=1, disk=1000, data=10.0, disk_rate=200.0)
    move = migrated_cold(cloud, server)
    # The third one was not copied: it would have been the second that was larger than the one before.
    assert move.data["warm"]["rounds"] == 3
    rest = move.data["snapshot"] or move.data["offer"]["disks"][0]
    rest = rest["size"] * rest["scale"]
    # Each round is twice as long as the one before, and the last changes are twice the second: four thirds of both.
    expected = move.data["warm"]["sent"] * 4 / 3
    assert expected * 0.9 < rest < expected * 1.1 + SLACK * 200 * MIB
    assert rest / (100 * MIB) * 0.99 <= stood_still(cloud, server) < rest / (100 * MIB) + SLACK
    assert writes(cloud, server)
    cloud.confirmed(server)


def test_without_rounds_the_guest_is_off_for_all_of_the_disk(cloud: LiveCloud) -> None:
    cloud.option("warm", "never", "moves")
    server = booted(cloud, "cold", gen=1, disk=200, data=100.0, disk_rate=5.0)
    before = writes(cloud, server)
    migrated_cold(cloud, server)
    assert 100 * GIB / GIGABIT <= stood_still(cloud, server) < 100 * GIB / GIGABIT + SLACK
    assert writes(cloud, server) >= before
    cloud.confirmed(server)


def test_a_limit_of_the_host_is_slower_than_the_link(cloud: LiveCloud) -> None:
    for service in cloud.parts.computes.values():
        # As [moves] bandwidth is when the host starts.
        service.host.rounds._slow_down = limited(service, 10.0 * MIB)
    try:
        server = booted(cloud, "limited", gen=1, disk=200, data=100.0)
        began = now(cloud)
        migrated_cold(cloud, server)
        assert 100 * GIB / (10 * MIB) * 0.99 <= now(cloud) - began < 100 * GIB / (10 * MIB) * 1.1 + SLACK
    finally:
        for service in cloud.parts.computes.values():
            service.host.rounds._slow_down = lambda _size: None
    cloud.confirmed(server)


def limited(service: Any, rate: float) -> Any:
    from causeway.compute.host.bandwidth import Bandwidth

    return Bandwidth(rate, service.host.stopping, service.host.clock).take


def test_a_live_migration_takes_what_memory_and_disk_take(cloud: LiveCloud) -> None:
    server = booted(cloud, "live", gen=1, ram=2048, disk=200, data=100.0, disk_rate=5.0, memory_rate=10.0)
    began, before, source = now(cloud), writes(cloud, server), cloud.host_of(server)
    after = cloud.migrated(server)
    assert after.compute_host == cloud.other(source), cloud.migration(server)
    assert 102 * GIB / GIGABIT <= now(cloud) - began < 120 * GIB / GIGABIT + SLACK
    assert stood_still(cloud, server) < SLACK
    assert writes(cloud, server) > before
    migration = cloud.migration(server)
    assert migration.status == "completed"
    # All of it is counted, whenever the source was last asked.
    steps = operations(cloud, server, everything=True)[0]["steps"]
    sent = next(each["bytes_done"] for each in steps if each["step"] == "MigrateGuest")
    counted = store.get(cloud.parts.api_database, migration.uuid)
    assert sent == (counted.memory_processed_bytes or 0) + (counted.disk_processed_bytes or 0)
    assert 102 * GIB <= sent < 120 * GIB + SLACK * GIGABIT
    assert (counted.memory_remaining_bytes, counted.disk_remaining_bytes) == (0, 0)
    cloud.check_left_nothing(server, after.compute_host)


def busy(cloud: LiveCloud, name: str) -> Any:
    """It changes 200 MiB of its memory a second, and the link takes 100."""
    set_links(cloud, 100.0 * MIB)
    # Of simulated seconds: it is reported often enough.
    cloud.option("live_migration_monitor_interval", 300.0, "libvirt")
    return booted(cloud, name, gen=1, ram=4096, disk=10, data=1.0, disk_rate=1.0, memory_rate=200.0)


def test_a_live_migration_that_takes_too_long_is_aborted(cloud: LiveCloud) -> None:
    server = busy(cloud, "aborted")
    began, source, before = now(cloud), cloud.host_of(server), writes(cloud, server)
    after = cloud.migrated(server)
    # 800 seconds for each of four GiB of memory, and for two of disks.
    assert after.compute_host == source and cloud.migration(server).status == "cancelled"
    assert 6 * 800.0 <= now(cloud) - began < 7 * 800.0 + SLACK
    assert writes(cloud, server) > before
    cloud.check_left_nothing(server, source)


def test_a_live_migration_that_takes_too_long_is_forced_if_that_is_configured(cloud: LiveCloud) -> None:
    cloud.option("live_migration_timeout_action", "force_complete", "libvirt")
    server = busy(cloud, "forced")
    began, source, before = now(cloud), cloud.host_of(server), writes(cloud, server)
    after = cloud.migrated(server)
    assert after.compute_host == cloud.other(source) and cloud.migration(server).status == "completed"
    assert now(cloud) - began >= 6 * 800.0
    # What is left is at most all of its memory, and at least what it changed while half of that was sent.
    assert 20.0 <= stood_still(cloud, server) < 41.0 + SLACK
    assert writes(cloud, server) > before
    cloud.check_left_nothing(server, after.compute_host)


def test_by_post_copy_it_runs_at_the_target_before_its_memory_is_there(cloud: LiveCloud) -> None:
    cloud.option("live_migration_timeout_action", "force_complete", "libvirt")
    cloud.option("live_migration_permit_post_copy", True, "libvirt")
    server = busy(cloud, "post-copy")
    source, before = cloud.host_of(server), writes(cloud, server)
    after = cloud.migrated(server)
    assert after.compute_host == cloud.other(source) and cloud.migration(server).status == "completed"
    # It writes 1 MiB a second, and its disk is complete when it continues.
    assert stood_still(cloud, server) < 20.0
    assert writes(cloud, server) > before
    cloud.check_left_nothing(server, after.compute_host)


def test_that_it_runs_at_the_target_already_is_shown(cloud: LiveCloud) -> None:
    cloud.option("live_migration_timeout_action", "force_complete", "libvirt")
    cloud.option("live_migration_permit_post_copy", True, "libvirt")
    server = busy(cloud, "post-copy")
    source = cloud.host_of(server)
    with cloud.held("post_live_migration_at_destination") as arrived:
        assert cloud.migrate_live(server).status_code == 202
        assert arrived.wait(PATIENCE)
        migration = cloud.migration(server)
        path = f"/servers/{server.id}/migrations"
        listed = cloud.admin.compute.get(path, microversion="2.96").json()["migrations"]
        abort = cloud.admin.compute.delete(f"{path}/{migration.id}", microversion="2.96").status_code
        force = cloud.admin.compute.post(
            f"{path}/{migration.id}/action", json={"force_complete": None}, microversion="2.96"
        ).status_code
    # As in Nova: nobody sees it in the list of the server, or can end it any more.
    assert (migration.status, listed, abort, force) == ("running (post-copy)", [], 400, 400)
    assert cloud.after(server).compute_host == cloud.other(source)
    assert cloud.migration(server).status == "completed"


def test_a_guest_that_may_be_slowed_down_comes_to_its_end(cloud: LiveCloud) -> None:
    cloud.option("live_migration_permit_auto_converge", True, "libvirt")
    server = busy(cloud, "slowed down")
    began, source = now(cloud), cloud.host_of(server)
    after = cloud.migrated(server)
    assert after.compute_host == cloud.other(source) and cloud.migration(server).status == "completed"
    assert now(cloud) - began < 6 * 800.0
    assert writes(cloud, server)
    assert stood_still(cloud, server) < SLACK


def test_a_near_live_pause_is_what_was_estimated(cloud: LiveCloud) -> None:
    set_links(cloud, 80.0 * MIB, latency=0.1)
    server = booted(cloud, "near-live", ram=2048, disk=100, data=50.0, disk_rate=1.0)
    source, before = cloud.host_of(server), writes(cloud, server)
    there = "cell2-host1" if source.startswith("cell1") else "cell1-host1"
    after = cloud.migrated(server, host=there)
    assert after.compute_host == there, cloud.migration(server)
    # The memory over the link, and the little that was written in the last round.
    assert 2048 / 80 <= stood_still(cloud, server) < reach.longest_pause(2048) + SLACK
    assert writes(cloud, server) > before
    cloud.check_left_nothing(server, there)
