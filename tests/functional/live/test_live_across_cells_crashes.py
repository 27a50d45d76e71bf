"""Somebody dies in a live migration to another cell, or an answer is lost: the guest runs on, in one place, with its memory."""

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

from . import step_points
from .live_cloud import ONE_NETWORK, LiveCloud
from .test_near_live import elsewhere

CLOUD: dict[str, Any] = {
    "overrides": {
        "DEFAULT": {"rpc_response_timeout": 2},
        "moves": {"lease": 1.5, "first_pause": 0.1, "stuck_retry_interval": 0.5},
        "libvirt": {"live_migration_monitor_interval": 0.0},
        "simulated": ONE_NETWORK,
        "fault_injection": {"enabled": True},
    }
}
pytestmark = THREADS_DIE
RECIPE = "live_migration"
STEPS = [
    "near_live_migration.SelectOtherCell.do.before",
    "near_live_migration.SelectOtherCell.do.after",
    *step_points.doing(across_cells=True),
]
UNDOING = step_points.undoing(across_cells=True)
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
    server = cloud.boot(flavor="any.small")
    cloud.attach(server, cloud.volume())
    source = cloud.host_of(server)
    cloud.driver(source).guest_write(server.id, "on disk")
    return server, source, cloud.remember(server, "a line")


def check(cloud: LiveCloud, server: Any, source: str, memory: list[str], there: str) -> str:
    """It ended, in whatever way; returns the migration's status."""
    after = cloud.after(server)
    status: str = cloud.migration(server).status
    assert after.status == "ACTIVE"
    assert after.compute_host == (there if status == "completed" else source), status
    assert cloud.memory(server)[: len(memory)] == memory
    assert "on disk" in cloud.driver(after.compute_host).guest_read(server.id)
    assert [move.recipe for move in cloud.moves(server)] == [RECIPE]
    cloud.check_left_nothing(server, after.compute_host)
    assert {each["status"] for each in cloud.attachments(server)} == {"attached"}
    return status


@pytest.mark.parametrize("point", STEPS)
def test_a_migration_completes_though_a_conductor_dies(
    cloud: LiveCloud, dies_at: Callable[[str], None], point: str
) -> None:
    server, source, memory = with_memory(cloud)
    there = elsewhere(cloud, server)
    dies_at(point)
    assert cloud.migrate_live(server, host=there).status_code == 202
    assert check(cloud, server, source, memory, there) == "completed"


@pytest.mark.parametrize("point", ORDERS)
def test_the_guest_runs_in_one_place_though_a_host_dies_in_an_order(
    cloud: LiveCloud, dies_at: Callable[[str], None], point: str
) -> None:
    server, source, memory = with_memory(cloud)
    there = elsewhere(cloud, server)
    dies_at(point)
    assert cloud.migrate_live(server, host=there).status_code == 202
    status = check(cloud, server, source, memory, there)
    # Who dies while memory travels takes the migration along; everything else is done again.
    travels = point.startswith(("compute.live_migration.", "driver.live_migrate.", "live."))
    assert status == "completed" or (travels and status == "failed")


@pytest.mark.parametrize("verdict", [Verdict.LOSE_REQUEST, Verdict.LOSE_REPLY])
@pytest.mark.parametrize("method", RPCS)
def test_a_message_is_lost(cloud: LiveCloud, method: str, verdict: Verdict) -> None:
    server, source, memory = with_memory(cloud)
    there = elsewhere(cloud, server)
    cloud.lose(method, verdict)
    assert cloud.migrate_live(server, host=there).status_code == 202
    check(cloud, server, source, memory, there)


@pytest.mark.parametrize("point", UNDOING)
def test_a_cancel_completes_though_a_conductor_dies(
    cloud: LiveCloud, dies_at: Callable[[str], None], point: str
) -> None:
    server, source, memory = with_memory(cloud)
    there = elsewhere(cloud, server)
    cloud.busy(server)
    dies_at(point)
    assert cloud.migrate_live(server, host=there).status_code == 202
    number = cloud.becomes(server, "running").id
    assert (
        cloud.admin.compute.delete(f"/servers/{server.id}/migrations/{number}", microversion="2.96").status_code == 202
    )
    assert check(cloud, server, source, memory, there) == "cancelled"


@pytest.mark.parametrize("where", ["stands still", "handed over"])
def test_the_guest_runs_in_one_place_though_the_source_dies_in_the_hand_over(cloud: LiveCloud, where: str) -> None:
    """Its hypervisor is started again, and knows by itself whether the guest is still its own."""
    server, source, memory = with_memory(cloud)
    there = elsewhere(cloud, server)
    driver = cloud.driver(source)

    def die(reached: str) -> None:
        if reached == where:
            raise SystemExit

    driver.at_hand_over = die
    assert cloud.migrate_live(server, host=there).status_code == 202
    cloud.becomes(server, "running")
    until(
        lambda: driver.presence(server.id),
        lambda seen: seen is Presence.PAUSED_FOR_MIGRATION,
        "the guest to stand still",
    )
    cloud.parts.computes[source].stop()
    come_back(cloud, source)
    status = check(cloud, server, source, memory, there)
    assert status == ("completed" if where == "handed over" else "failed")
