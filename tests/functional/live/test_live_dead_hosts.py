"""Hosts that die in a live migration: the guest is nowhere twice, and what is left behind goes when they are back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from causeway.model.states import PowerState
from causeway.store.api import journal
from causeway.store.cell import hosts
from tests.functional.servers.dead_hosts import come_back, left_on

from .live_cloud import LiveCloud, until

CLOUD: dict[str, Any] = {
    "overrides": {
        "DEFAULT": {"rpc_response_timeout": 2},
        "moves": {"lease": 3.0, "first_pause": 0.1, "stuck_retry_interval": 0.5},
        "fault_injection": {"enabled": True},
    }
}
pytestmark = [
    pytest.mark.embedded("stops compute services and starts them again"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
    pytest.mark.usefixtures("dead"),
]


def broken_off(cloud: LiveCloud, dies_at: Callable[[str], None]) -> tuple[Any, str]:
    """A server whose live migration nobody carries on, in the middle of its memory; nobody else knows that yet."""
    server = cloud.boot()
    source = cloud.host_of(server)
    cloud.busy(server)
    dies_at("live.transfer.in")
    assert cloud.migrate_live(server).status_code == 202
    cloud.becomes(server, "running")
    target = cloud.driver(cloud.other(source))
    until(lambda: target.files.incoming(server.id).exists(), bool, "the target to be ready")
    until(lambda: cloud.driver(source).live_progress(server.id), lambda found: found is None, "the hypervisor to stop")
    return server, source


def test_a_move_waits_for_a_source_that_dies_while_memory_travels(
    cloud: LiveCloud, dead: Callable[..., None], dies_at: Callable[[str], None]
) -> None:
    server, source = broken_off(cloud, dies_at)
    dead(source, fenced=False)
    # While nobody knows whether it runs there, it is brought up nowhere.
    (move,) = _waiting(cloud, server)
    assert f"openstack compute service set --down {source}" in (move.error or {})["details"]
    assert cloud.show(server).status == "MIGRATING"
    dead(source)
    after = cloud.after(server)
    assert after.compute_host == source and cloud.migration(server).status == "failed"
    assert cloud.hosts_of(server) == {source: "guest"}
    assert list(cloud.allocations(server.id)) == [source]
    answer = cloud.admin.compute.post(f"/servers/{server.id}/action", json={"evacuate": {}}, microversion="2.94")
    assert answer.status_code == 200, answer.text
    found = until(lambda: cloud.show(server), lambda found: found.task_state is None, "the evacuation")
    assert (found.status, found.compute_host) == ("ACTIVE", cloud.other(source))
    come_back(cloud, source)
    until(lambda: cloud.hosts_of(server), lambda found: found == {cloud.other(source): "guest"}, "the host to be clean")


def _waiting(cloud: LiveCloud, server: Any) -> Any:
    def moves() -> Any:
        return [
            move for move in journal.of_server(cloud.parts.api_database, server.id) if move.recipe == "live_migration"
        ]

    return until(
        moves,
        lambda found: (found[0].error or {}).get("code") == "host_down",
        "the operation to wait for its host",
    )


def test_the_guest_stays_if_the_target_dies_while_memory_travels(
    cloud: LiveCloud, dead: Callable[..., None], dies_at: Callable[[str], None]
) -> None:
    server, source = broken_off(cloud, dies_at)
    target, memory = cloud.other(source), cloud.memory(server)
    dead(target)
    after = cloud.after(server)
    assert after.compute_host == source and cloud.migration(server).status == "failed"
    assert cloud.memory(server) == memory
    assert left_on(cloud, target) == ["rollback_live_migration_at_destination"]
    come_back(cloud, target)
    assert left_on(cloud, target) == []
    cloud.check_left_nothing(server, source)


def test_the_guest_is_not_lost_if_the_target_is_down_when_it_has_arrived(
    cloud: LiveCloud, at_point: Callable[..., None]
) -> None:
    """Its hypervisor runs the guest, and nobody can ask it: so nobody says that the guest is lost."""
    server = cloud.boot()
    source, memory = cloud.host_of(server), cloud.remember(server, "a line")
    target = cloud.other(source)
    database = cloud.cell("cell1")

    def down() -> None:
        cloud.parts.computes[target].stop()
        for service in hosts.list_services(database, host=target, binary="nova-compute"):
            hosts.update_service(database, service.uuid, last_seen_up=None)

    at_point("compute.live_migration.before", down)
    assert cloud.migrate_live(server).status_code == 202
    _waiting(cloud, server)
    assert cloud.show(server).status == "MIGRATING"
    assert cloud.driver(source).running_anywhere(server.id) == [target]
    come_back(cloud, target)
    after = cloud.after(server)
    assert after.compute_host == target and cloud.migration(server).status == "completed"
    assert cloud.memory(server) == memory
    cloud.check_left_nothing(server, target)


@pytest.mark.parametrize("fenced", [False, True])
def test_a_move_completes_if_the_source_is_down_when_the_guest_has_gone(
    cloud: LiveCloud, dead: Callable[..., None], at_point: Callable[..., None], fenced: bool
) -> None:
    server = cloud.boot_from_volume()
    source, memory = cloud.host_of(server), cloud.remember(server, "a line")
    at_point("live_migration.ReleaseSource.do.before", lambda: dead(source, fenced=fenced))
    after = cloud.migrated(server)
    target = cloud.other(source)
    assert after.compute_host == target and cloud.migration(server).status == "completed"
    assert cloud.memory(server) == memory
    assert left_on(cloud, source) == ["post_live_migration_at_source"]
    come_back(cloud, source)
    assert left_on(cloud, source) == []
    cloud.check_left_nothing(server, target)


def test_a_source_that_still_shows_the_guest_releases_it(cloud: LiveCloud) -> None:
    """As a hypervisor that was restarted right after the hand-over: it has the guest, too, and stands still."""
    server = cloud.boot()
    source = cloud.host_of(server)
    driver = cloud.driver(source)

    def die(where: str) -> None:
        if where == "handed over":
            raise SystemExit

    driver.at_hand_over, before = die, driver.at_hand_over
    memory = cloud.remember(server, "a line")
    after = cloud.migrated(server)
    driver.at_hand_over = before
    assert after.compute_host == cloud.other(source)
    assert cloud.memory(server) == memory
    assert driver.inspect(server.id).power_state is None
    cloud.check_left_nothing(server, after.compute_host)


def test_a_host_that_is_stopped_ends_its_migrations(cloud: LiveCloud) -> None:
    server = cloud.boot()
    source = cloud.host_of(server)
    cloud.busy(server)
    cloud.migrate_live(server)
    cloud.becomes(server, "running")
    cloud.job_runs(server)
    cloud.parts.computes[source].stop()
    come_back(cloud, source)
    after = cloud.after(server)
    assert after.compute_host == source and cloud.migration(server).status == "failed"
    assert cloud.driver(source).inspect(server.id).power_state is PowerState.RUNNING
    cloud.check_left_nothing(server, source)
