"""What a guest really does and what its server is said to do are brought together, and work in progress is left alone."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from causeway.model.states import PowerState, TaskState, VmState
from causeway.store.cell import instances
from causeway.store.database import utcnow
from tests.functional.servers.moves_cloud import Cloud, until

pytestmark = pytest.mark.embedded("guests are started behind the cloud's back")
CLOUD = {"overrides": {"DEFAULT": {"report_interval": 3600, "service_down_time": 7200, "sync_power_state_interval": 0}}}


def report(cloud: Cloud, server: Any) -> None:
    """The server's host reports; what the server is was settled long ago."""
    home = cloud.show(server).compute_host
    instances.update(cloud.cell(home[:5]), server.id, updated_at=utcnow() - timedelta(days=1))
    cloud.report(home)


def driver(cloud: Cloud, server: Any) -> Any:
    return cloud.driver(cloud.show(server).compute_host)


def start_behind_our_back(cloud: Cloud, server: Any) -> None:
    driver(cloud, server)._change_power(server.id, PowerState.RUNNING, before=PowerState.SHUTDOWN)


def test_a_guest_that_stopped_by_itself_makes_its_server_shutoff(cloud: Cloud) -> None:
    server = cloud.boot()
    driver(cloud, server).power_off(server.id, 0)
    report(cloud, server)
    assert cloud.show(server).status == "SHUTOFF"


def test_a_paused_guest_that_stopped_by_itself_makes_its_server_shutoff(cloud: Cloud) -> None:
    server = cloud.boot()
    cloud.member.compute.pause_server(server.id)
    cloud.wait(server, "PAUSED")
    driver(cloud, server).power_off(server.id, 0)
    report(cloud, server)
    assert cloud.show(server).status == "SHUTOFF"


def stopped(cloud: Cloud) -> Any:
    server = cloud.boot()
    cloud.member.compute.stop_server(server.id)
    return cloud.wait(server, "SHUTOFF")


def test_a_guest_that_runs_though_its_server_is_stopped_is_stopped(cloud: Cloud) -> None:
    server = stopped(cloud)
    start_behind_our_back(cloud, server)
    report(cloud, server)
    until(
        lambda: driver(cloud, server).inspect(server.id).power_state, lambda seen: seen == PowerState.SHUTDOWN, "stop"
    )
    assert cloud.wait(server, "SHUTOFF").power_state == PowerState.SHUTDOWN


@pytest.mark.parametrize(
    "states",
    [
        {"task_state": TaskState.RESIZE_PREP},
        {"task_state": TaskState.POWERING_ON},
        {"vm_state": VmState.RESIZED},
        {"hidden": True},
    ],
)
def test_what_somebody_works_on_is_left_alone(cloud: Cloud, states: dict[str, Any]) -> None:
    server = stopped(cloud)
    home = cloud.show(server).compute_host
    start_behind_our_back(cloud, server)
    database = cloud.cell(home[:5])
    instances.update(database, server.id, updated_at=utcnow() - timedelta(days=1), **states)
    cloud.report(home)
    cloud.settle()
    assert cloud.driver(home).inspect(server.id).power_state == PowerState.RUNNING
    instances.update(database, server.id, task_state=None, vm_state=VmState.STOPPED, hidden=False)


def test_power_states_are_not_synchronized_if_that_is_switched_off(cloud: Cloud) -> None:
    cloud.option("sync_power_state_interval", -1)
    server = stopped(cloud)
    start_behind_our_back(cloud, server)
    report(cloud, server)
    cloud.settle()
    assert driver(cloud, server).inspect(server.id).power_state == PowerState.RUNNING


def test_servers_for_which_no_zone_is_asked_go_to_the_default_one(cloud: Cloud) -> None:
    aggregate = cloud.admin.compute.create_aggregate(name="zoned", availability_zone="zoned")
    cloud.admin.compute.add_host_to_aggregate(aggregate.id, "cell2-host2")
    try:
        cloud.option("default_schedule_zone", "zoned")
        cloud.report()
        server = cloud.boot(flavor="any.small")
        assert cloud.show(server).compute_host == "cell2-host2"
        assert cloud.show(server).availability_zone == "zoned"
        elsewhere = cloud.boot(flavor="any.small", availability_zone="nova")
        assert cloud.show(elsewhere).compute_host != "cell2-host2"
    finally:
        cloud.option("default_schedule_zone", None)
        cloud.clean()
        cloud.admin.compute.remove_host_from_aggregate(aggregate.id, "cell2-host2")
        cloud.admin.compute.delete_aggregate(aggregate.id)
