"""Somebody dies in the middle of a live migration, or an answer is lost: the guest runs on, in one place, with its memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from causeway.faults import points
from causeway.rpc.compute.live_calls import LiveCalls
from causeway.rpc.transport import Verdict
from causeway.virt.live_guest import Presence
from tests.functional.servers.dead_hosts import come_back
from tests.functional.servers.dying_threads import THREADS_DIE
from tests.functional.servers.moves_cloud import until
from tests.functional.servers.operations.test_watched_operations import operations

from . import step_points
from .live_cloud import LiveCloud

CLOUD: dict[str, Any] = {
    "overrides": {
        "DEFAULT": {"rpc_response_timeout": 2},
        "moves": {"lease": 1.5, "first_pause": 0.1, "stuck_retry_interval": 0.5},
        "libvirt": {"live_migration_monitor_interval": 0.0},
        "fault_injection": {"enabled": True},
    }
}
pytestmark = THREADS_DIE
STEPS, UNDOING = step_points.doing(across_cells=False), step_points.undoing(across_cells=False)
ORDERS = [
    *(point for point in points.compute_points() if "live_migra" in point and "rollback" not in point),
    *(f"driver.{name}.{side}" for name in ("prepare_live_target", "live_migrate") for side in ("before", "after")),
    "live.transfer.in",
]
RPCS = [
    name
    for name in vars(LiveCalls)
    if not name.startswith("_") and not name.endswith(("abort", "force_complete")) and "rollback" not in name
]


def with_memory(cloud: LiveCloud) -> tuple[Any, str, list[str]]:
    server = cloud.boot_from_volume()
    cloud.attach(server, cloud.volume())
    return server, cloud.host_of(server), cloud.remember(server, "a line")


def check(cloud: LiveCloud, server: Any, source: str, memory: list[str]) -> str:
    """It ended, in whatever way; returns the migration's status."""
    after = cloud.after(server)
    status: str = cloud.migration(server).status
    assert after.status == "ACTIVE"
    assert after.compute_host == (cloud.other(source) if status == "completed" else source), status
    assert cloud.memory(server)[: len(memory)] == memory
    cloud.check_left_nothing(server, after.compute_host)
    assert {each["status"] for each in cloud.attachments(server)} == {"attached"}
    return status


@pytest.mark.parametrize("point", STEPS)
def test_a_migration_completes_though_a_conductor_dies(
    cloud: LiveCloud, dies_at: Callable[[str], None], point: str
) -> None:
    server, source, memory = with_memory(cloud)
    dies_at(point)
    assert cloud.migrate_live(server).status_code == 202
    assert check(cloud, server, source, memory) == "completed"


@pytest.mark.parametrize("point", ORDERS)
def test_the_guest_runs_in_one_place_though_a_host_dies_in_an_order(
    cloud: LiveCloud, dies_at: Callable[[str], None], point: str
) -> None:
    server, source, memory = with_memory(cloud)
    dies_at(point)
    assert cloud.migrate_live(server).status_code == 202
    status = check(cloud, server, source, memory)
    # Who dies while memory travels takes the migration along; everything else is done again.
    travels = point.startswith(("compute.live_migration.", "driver.live_migrate.", "live."))
    assert status == "completed" or (travels and status == "failed")


@pytest.mark.parametrize("verdict", [Verdict.LOSE_REQUEST, Verdict.LOSE_REPLY])
@pytest.mark.parametrize("method", RPCS)
def test_a_message_is_lost(cloud: LiveCloud, method: str, verdict: Verdict) -> None:
    server, source, memory = with_memory(cloud)
    cloud.lose(method, verdict)
    assert cloud.migrate_live(server).status_code == 202
    check(cloud, server, source, memory)


@pytest.mark.parametrize("point", UNDOING)
def test_a_cancel_completes_though_a_conductor_dies(
    cloud: LiveCloud, dies_at: Callable[[str], None], point: str
) -> None:
    server, source, memory = with_memory(cloud)
    cloud.busy(server)
    dies_at(point)
    assert cloud.migrate_live(server).status_code == 202
    number = cloud.becomes(server, "running").id
    assert (
        cloud.admin.compute.delete(f"/servers/{server.id}/migrations/{number}", microversion="2.96").status_code == 202
    )
    assert check(cloud, server, source, memory) == "cancelled"


@pytest.mark.parametrize("where", ["stands still", "handed over"])
def test_the_guest_runs_in_one_place_though_the_source_dies_in_the_hand_over(cloud: LiveCloud, where: str) -> None:
    """Its hypervisor is started again, and knows by itself whether the guest is still its own."""
    server, source, memory = with_memory(cloud)
    driver = cloud.driver(source)

    def die(reached: str) -> None:
        if reached == where:
            raise SystemExit

    driver.at_hand_over = die
    assert cloud.migrate_live(server).status_code == 202
    cloud.becomes(server, "running")
    until(
        lambda: driver.presence(server.id),
        lambda seen: seen is Presence.PAUSED_FOR_MIGRATION,
        "the guest to stand still",
    )
    # Nobody but the other host may let it continue.
    assert cloud.driver(source).inspect(server.id).power_state == 3
    cloud.parts.computes[source].stop()
    come_back(cloud, source)
    status = check(cloud, server, source, memory)
    assert status == ("completed" if where == "handed over" else "failed")


def test_a_guest_that_was_handed_over_and_ended_there_is_not_woken_where_it_was(cloud: LiveCloud) -> None:
    """Whether it ran at the target is not known any more: an operator says so, by ending it at the source."""
    server, source, _memory = with_memory(cloud)
    driver, there = cloud.driver(source), cloud.driver(cloud.other(source))

    def ends(reached: str) -> None:
        if reached == "handed over":
            there.destroy(server.id, [], [], destroy_disks=True)
            raise SystemExit

    driver.at_hand_over = ends
    assert cloud.migrate_live(server).status_code == 202
    (operation,) = until(
        lambda: operations(cloud, server),
        lambda found: found and "virsh destroy" in str(found[0]["error"]),
        "the migration to say what to do",
    )
    assert "stands still" in str(operation["error"]) and server.id in str(operation["error"])
    assert driver.presence(server.id) is Presence.PAUSED_FOR_MIGRATION
    driver.at_hand_over = lambda _where: None
    # As an operator does on the host.
    driver.power_off(server.id, 0.0)
    after = cloud.after(server)
    assert (after.compute_host, cloud.migration(server).status) == (source, "failed")
    cloud.admin.compute.reboot_server(server.id, "HARD")
    until(lambda: driver.inspect(server.id).power_state, lambda state: state == 1, "the guest to boot")
    cloud.wait(server, "ACTIVE")
    cloud.check_left_nothing(server, source)
