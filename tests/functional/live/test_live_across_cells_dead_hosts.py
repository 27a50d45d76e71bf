"""Hosts that die in a live migration to another cell: the guest is nowhere twice, and the server follows it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from causeway.store.api import journal
from causeway.store.cell import hosts
from tests.functional.servers.dead_hosts import come_back, left_on

from .live_cloud import ONE_NETWORK, LiveCloud, until
from .test_near_live import booted, elsewhere

CLOUD: dict[str, Any] = {
    "overrides": {
        "DEFAULT": {"rpc_response_timeout": 2},
        "moves": {"lease": 3.0, "first_pause": 0.1, "stuck_retry_interval": 0.5},
        "simulated": ONE_NETWORK,
        "fault_injection": {"enabled": True},
    }
}
pytestmark = [
    pytest.mark.embedded("stops compute services and starts them again"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
    pytest.mark.usefixtures("dead"),
]


def broken_off(cloud: LiveCloud, dies_at: Callable[[str], None]) -> tuple[Any, str, str]:
    """A server whose migration nobody carries on, in the middle of its memory; nobody else knows that yet."""
    server, _memory = booted(cloud)
    source, there = cloud.host_of(server), elsewhere(cloud, server)
    cloud.busy(server)
    dies_at("live.transfer.in")
    assert cloud.migrate_live(server, host=there).status_code == 202
    cloud.becomes(server, "running")
    target = cloud.driver(there)
    until(lambda: target.files.incoming(server.id).exists(), bool, "the target to be ready")
    until(lambda: cloud.driver(source).live_progress(server.id), lambda found: found is None, "the hypervisor to stop")
    return server, source, there


def waiting(cloud: LiveCloud, server: Any, code: str = "host_down") -> Any:
    """Its move, when it waits for a host."""

    def newest() -> Any:
        return journal.of_server(cloud.parts.api_database, server.id)[-1]

    def waits(move: Any) -> bool:
        return (move.error or {}).get("code") == code

    return until(newest, waits, "the operation to wait for its host")


def test_a_move_waits_for_a_source_that_dies_while_memory_travels(
    cloud: LiveCloud, dead: Callable[..., None], dies_at: Callable[[str], None]
) -> None:
    server, source, there = broken_off(cloud, dies_at)
    dead(source, fenced=False)
    move = waiting(cloud, server)
    assert f"openstack compute service set --down {source}" in (move.error or {})["details"]
    assert cloud.show(server).status == "MIGRATING"
    dead(source)
    after = cloud.after(server)
    assert after.compute_host == source and cloud.migration(server).status == "failed"
    assert cloud.hosts_of(server) == {source: "guest"}
    assert list(cloud.allocations(server.id)) == [source]
    assert not cloud.driver(there).files.incoming(server.id).exists()
    come_back(cloud, source)
    assert cloud.parts.computes[source].host.departures.servers() == []
    assert left_on(cloud, source) == []


def test_the_guest_stays_if_the_target_dies_while_memory_travels(
    cloud: LiveCloud, dead: Callable[..., None], dies_at: Callable[[str], None]
) -> None:
    server, source, there = broken_off(cloud, dies_at)
    memory = cloud.memory(server)
    dead(there)
    after = cloud.after(server)
    assert after.compute_host == source and cloud.migration(server).status == "failed"
    assert cloud.memory(server) == memory
    assert left_on(cloud, there) == ["rollback_live_migration_at_destination"]
    come_back(cloud, there)
    assert left_on(cloud, there) == []
    cloud.check_left_nothing(server, source)


def test_the_guest_is_not_lost_if_the_target_is_down_when_it_has_arrived(
    cloud: LiveCloud, at_point: Callable[..., None]
) -> None:
    """Its hypervisor runs the guest, and nobody can ask it: so nobody says that the guest is lost."""
    server, memory = booted(cloud)
    source, there = cloud.host_of(server), elsewhere(cloud, server)
    database = cloud.cell(there[:5])

    def down() -> None:
        cloud.parts.computes[there].stop()
        for service in hosts.list_services(database, host=there, binary="nova-compute"):
            hosts.update_service(database, service.uuid, last_seen_up=None)

    at_point("compute.live_migration.before", down)
    assert cloud.migrate_live(server, host=there).status_code == 202
    waiting(cloud, server)
    assert cloud.show(server).status == "MIGRATING"
    assert cloud.driver(source).running_anywhere(server.id) == [there]
    come_back(cloud, there)
    after = cloud.after(server)
    assert after.compute_host == there and cloud.migration(server).status == "completed"
    assert cloud.memory(server) == memory
    cloud.check_left_nothing(server, there)


@pytest.mark.parametrize("fenced", [False, True])
@pytest.mark.parametrize("step", ["SwitchInstanceMapping", "ReleaseSource"])
def test_a_move_completes_if_the_source_is_down_when_the_guest_has_gone(
    cloud: LiveCloud, dead: Callable[..., None], at_point: Callable[..., None], step: str, fenced: bool
) -> None:
    server, memory = booted(cloud)
    cloud.attach(server, cloud.volume())
    source, there = cloud.host_of(server), elsewhere(cloud, server)
    at_point(f"live_migration.{step}.do.before", lambda: dead(source, fenced=fenced))
    after = cloud.migrated(server, host=there)
    assert after.compute_host == there and cloud.migration(server).status == "completed"
    assert cloud.memory(server) == memory
    assert left_on(cloud, source) == ["post_live_migration_at_source"]
    come_back(cloud, source)
    assert left_on(cloud, source) == []
    cloud.check_left_nothing(server, there)


def test_the_server_is_one_of_a_dead_host_if_the_target_dies_after_arrival(
    cloud: LiveCloud, dead: Callable[..., None], at_point: Callable[..., None]
) -> None:
    """The server is one of a dead host, in its new cell; what the source still has of its disks is not destroyed."""
    server, _memory = booted(cloud)
    source, there = cloud.host_of(server), elsewhere(cloud, server)
    at_point("live_migration.ArriveAtTarget.do.before", lambda: dead(there, fenced=True))
    assert cloud.migrate_live(server, host=there).status_code == 202
    waiting(cloud, server, "host_fenced")
    assert (cloud.show(server).compute_host, cloud.show(server).status) == (there, "MIGRATING")
    assert cloud.driver(source).inspect(server.id).has_disks
    come_back(cloud, there)
    after = cloud.after(server)
    assert after.compute_host == there and cloud.migration(server).status == "completed"
    cloud.check_left_nothing(server, there)
