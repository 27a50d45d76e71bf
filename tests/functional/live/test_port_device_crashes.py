"""Somebody dies in a migration of a guest whose port is a device of its host: the port is in the guest, wherever that is.

What is looked at is outside of what moves the guest: the hypervisors' guests, the hosts' claims, and the network service.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from causeway.model.states import PowerState
from causeway.rpc.compute.live_calls import PortDeviceCalls
from causeway.rpc.transport import Verdict
from tests.functional.servers import sriov_cloud
from tests.functional.servers.dead_hosts import come_back
from tests.functional.servers.dying_threads import SOON_NOTICED, THREADS_DIE
from tests.functional.servers.sriov_cloud import FUNCTIONS, devices_on

from . import step_points
from .live_cloud import ONE_NETWORK, LiveCloud, until
from .test_ports_with_devices import booted, check_at, ports_in_guest

CLOUD: dict[str, Any] = {
    **SOON_NOTICED,
    "overrides": {
        **SOON_NOTICED["overrides"],
        **sriov_cloud.OVERRIDES,
        "simulated": sriov_cloud.OVERRIDES["simulated"] | ONE_NETWORK,
        "libvirt": {"live_migration_monitor_interval": 0.0},
    },
}
pytestmark = THREADS_DIE
networks, ports = sriov_cloud.networks, sriov_cloud.ports

INSIDE, ACROSS, NEAR_LIVE = "inside a cell", "across cells", "near-live"
DOING = {
    INSIDE: step_points.doing(across_cells=False, port_devices=True),
    ACROSS: step_points.doing(across_cells=True, port_devices=True),
    NEAR_LIVE: step_points.doing_near_live(port_devices=True),
}
ORDERS = [
    *(
        f"compute.{name}.{place}"
        for name in ("detach_port_devices", "attach_port_devices")
        for place in ("before", "in", "after")
    ),
    *(f"driver.{name}.{place}" for name in ("detach_interface", "attach_interface") for place in ("before", "after")),
]
RPCS = [name for name in vars(PortDeviceCalls) if not name.startswith("_")]
UNDOING = step_points.undoing(across_cells=False, port_devices=True)


def migrated(
    cloud: LiveCloud, ports: Any, way: str, prepare: Callable[[], None]
) -> tuple[Any, Any, str, str, list[str]]:
    """A server whose migration has begun after ``prepare``: (server, its port, source, target, memory)."""
    server, port, source, target = booted(cloud, ports, crosses=way != INSIDE)
    if way == NEAR_LIVE:
        cloud.option("direct", "never", "moves")
    memory = cloud.remember(server, "a line")
    prepare()
    assert cloud.migrate_live(server, host=target).status_code == 202
    return server, port, source, target, memory


def check(cloud: LiveCloud, moved: tuple[Any, Any, str, str, list[str]]) -> str:
    """The migration has ended, in whatever way; returns its status."""
    server, port, source, target, memory = moved
    after = cloud.after(server)
    status: str = cloud.migration(server).status
    assert after.status == "ACTIVE"
    assert after.compute_host == (target if status == "completed" else source), status
    assert cloud.memory(server)[: len(memory)] == memory
    has_moved = status == "completed"
    check_at(cloud, server, port, after.compute_host, FUNCTIONS[1 if has_moved else 0])
    # The other one has the first function of the target.
    assert devices_on(cloud, target) == FUNCTIONS[: 2 if has_moved else 1]
    assert devices_on(cloud, source) == FUNCTIONS[: 0 if has_moved else 1]
    return status


@pytest.mark.parametrize(("way", "point"), [(way, point) for way, found in DOING.items() for point in found])
def test_a_port_comes_along_though_a_conductor_dies(
    cloud: LiveCloud, ports: Any, dies_at: Callable[[str], None], way: str, point: str
) -> None:
    assert check(cloud, migrated(cloud, ports, way, lambda: dies_at(point))) == "completed"


@pytest.mark.parametrize("way", [INSIDE, ACROSS, NEAR_LIVE])
@pytest.mark.parametrize("point", ORDERS)
def test_a_port_comes_along_though_a_host_dies_in_an_order(
    cloud: LiveCloud, ports: Any, dies_at: Callable[[str], None], way: str, point: str
) -> None:
    assert check(cloud, migrated(cloud, ports, way, lambda: dies_at(point))) == "completed"


@pytest.mark.parametrize("verdict", [Verdict.LOSE_REQUEST, Verdict.LOSE_REPLY])
@pytest.mark.parametrize("method", RPCS)
def test_a_port_comes_along_though_a_message_is_lost(
    cloud: LiveCloud, ports: Any, method: str, verdict: Verdict
) -> None:
    assert check(cloud, migrated(cloud, ports, INSIDE, lambda: cloud.lose(method, verdict))) == "completed"


@pytest.mark.parametrize("point", UNDOING)
def test_a_port_comes_back_though_a_conductor_dies_in_a_cancel(
    cloud: LiveCloud, ports: Any, dies_at: Callable[[str], None], point: str
) -> None:
    moved = cancelled(cloud, ports, lambda: dies_at(point))
    assert check(cloud, moved) == "cancelled"


@pytest.mark.parametrize("point", [point for point in ORDERS if "attach_" in point and "detach_" not in point])
def test_a_port_comes_back_though_its_host_dies_when_it_attaches_it_again(
    cloud: LiveCloud, ports: Any, dies_at: Callable[[str], None], point: str
) -> None:
    moved = cancelled(cloud, ports, lambda: dies_at(point))
    assert check(cloud, moved) == "cancelled"


def cancelled(cloud: LiveCloud, ports: Any, then: Callable[[], None]) -> tuple[Any, Any, str, str, list[str]]:
    """A server whose migration is cancelled while its memory travels."""
    server, port, source, target = booted(cloud, ports)
    memory = cloud.remember(server, "a line")
    cloud.busy(server)
    assert cloud.migrate_live(server, host=target).status_code == 202
    number = cloud.becomes(server, "running").id
    cloud.job_runs(server)
    then()
    path = f"/servers/{server.id}/migrations/{number}"
    assert cloud.admin.compute.delete(path, microversion="2.96").status_code == 202
    return server, port, source, target, memory


def test_a_port_is_attached_when_a_target_that_lost_its_power_is_back(
    cloud: LiveCloud, ports: Any, dead: Callable[..., None], at_point: Callable[..., None]
) -> None:
    """The guest has arrived and is off with its host: it has its port from its next start on."""
    server, port, source, target = booted(cloud, ports)
    at_point("live_migration.AttachPorts.do.before", lambda: dead(target, fenced=False))
    assert cloud.migrate_live(server, host=target).status_code == 202
    waits_for_host(cloud, server)
    come_back(cloud, target)
    assert cloud.after(server).compute_host == target
    assert cloud.migration(server).status == "completed"
    started(cloud, server)
    check_at(cloud, server, port, target, FUNCTIONS[1])
    assert devices_on(cloud, source) == []


def test_a_port_comes_back_after_its_source_lost_its_power_while_memory_travelled(
    cloud: LiveCloud, ports: Any, dead: Callable[..., None], dies_at: Callable[[str], None]
) -> None:
    server, port, source, target = booted(cloud, ports)
    cloud.busy(server)
    dies_at("live.transfer.in")
    assert cloud.migrate_live(server, host=target).status_code == 202
    cloud.becomes(server, "running")
    until(lambda: cloud.driver(source).live_progress(server.id), lambda found: found is None, "the hypervisor to stop")
    assert ports_in_guest(cloud, server) == {}
    dead(source)
    assert cloud.after(server).compute_host == source
    assert cloud.migration(server).status == "failed"
    come_back(cloud, source)
    started(cloud, server)
    check_at(cloud, server, port, source, FUNCTIONS[0])
    assert devices_on(cloud, target) == FUNCTIONS[:1]


def waits_for_host(cloud: LiveCloud, server: Any) -> None:
    until(
        lambda: [(move.error or {}).get("code") for move in cloud.moves(server)],
        lambda codes: "host_down" in codes,
        "the migration to wait for its host",
    )


def started(cloud: LiveCloud, server: Any) -> None:
    """The guest that was off runs again."""
    host = cloud.host_of(server)
    cloud.report(host)
    if cloud.driver(host).inspect(server.id).power_state is not PowerState.RUNNING:
        until(lambda: cloud.show(server).status, lambda status: status == "SHUTOFF", "its state to be known")
        cloud.member.compute.start_server(server.id)
    cloud.wait(server, "ACTIVE")
    cloud.settle()
