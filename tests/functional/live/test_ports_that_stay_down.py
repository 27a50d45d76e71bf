"""A port that does not come up where its guest went, or was made: the work ends, and says so in its steps and its history."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from causeway.compute.guests import plugging
from causeway.compute.host import vif_events
from causeway.devcloud.switches import Backend
from causeway.errors import PortsDown
from causeway.servers.unplugged import EVENT
from causeway.store.api import journal

from .live_cloud import LiveCloud

HOSTS = ["cell1-host1", "cell1-host2", "cell2-host1", "cell2-host2"]
CLOUD = {"overrides": {"simulated": {"live_networks": dict.fromkeys(HOSTS, "one")}}}


@pytest.fixture(autouse=True)
def _nobody_waits_for_long(cloud: LiveCloud, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(plugging, "PATIENCE", 0.5)
    monkeypatch.setattr(vif_events, "LOOK_EVERY", 0.2)
    cloud.option("vif_plugging_timeout", 1)
    cloud.option("vif_plugging_is_fatal", False)
    cloud.option("live_migration_wait_for_vif_plug", False, "compute")
    yield
    cloud.parts.devcloud.backends, cloud.parts.devcloud.unpluggable_hosts = {}, set()


def live(cloud: LiveCloud, server: Any, target: str) -> None:
    assert cloud.migrated(server, host=target).compute_host == target


def cold(cloud: LiveCloud, server: Any, target: str) -> None:
    cloud.admin.compute.migrate_server(server, host=target)
    assert cloud.wait(server, "VERIFY_RESIZE").compute_host == target


def rebuilt(cloud: LiveCloud, server: Any, _target: str) -> None:
    cloud.member.compute.rebuild_server(server, image=cloud.show(server).image["id"])
    cloud.wait(server, "ACTIVE")


def port_of(cloud: LiveCloud, server: Any) -> str:
    (port,) = cloud.admin.network.ports(device_id=server.id)
    return str(port.id)


def said(cloud: LiveCloud, server: Any) -> list[str]:
    """What the steps of the server's operations say of ports that are down."""
    api = cloud.parts.api_database
    steps = [step for done in journal.of_server(api, server.id) for step in journal.steps(api, done.id)]
    return [step.error["message"] for step in steps if step.error and step.error["code"] == PortsDown.code]


@pytest.mark.parametrize(
    ("go", "target", "action"),
    [
        (live, "cell1-host2", "live-migration"),
        (live, "cell2-host1", "live-migration"),
        (cold, "cell1-host2", "migrate"),
        (cold, "cell2-host1", "migrate"),
        (rebuilt, "cell1-host1", "rebuild"),
    ],
)
def test_the_steps_and_the_history_say_which_port_is_down(
    cloud: LiveCloud, go: Callable[[LiveCloud, Any, str], None], target: str, action: str
) -> None:
    server = cloud.booted_on("cell1-host1", "server", "any.small")
    cloud.parts.devcloud.backends = dict.fromkeys(HOSTS, Backend.AGENT)
    cloud.parts.devcloud.unpluggable_hosts = {target}
    if go is rebuilt:
        cloud.admin.network.update_port(port_of(cloud, server), admin_state_up=False)
        cloud.admin.network.update_port(port_of(cloud, server), admin_state_up=True)
    go(cloud, server, target)
    (message,) = said(cloud, server)
    assert target in message and port_of(cloud, server) in message
    assert (EVENT, "Error") in cloud.events(server, action)
    (done,) = [each for each in cloud.member.compute.server_actions(server) if each.action == action]
    assert done.message is None


@pytest.mark.parametrize("backend", list(Backend))
@pytest.mark.parametrize(("go", "target"), [(live, "cell1-host2"), (live, "cell2-host1"), (cold, "cell2-host1")])
def test_nothing_is_said_of_a_port_that_comes_up(
    cloud: LiveCloud, backend: Backend, go: Callable[[LiveCloud, Any, str], None], target: str
) -> None:
    cloud.parts.devcloud.backends = dict.fromkeys(HOSTS, backend)
    server = cloud.booted_on("cell1-host1", "server", "any.small")
    go(cloud, server, target)
    assert said(cloud, server) == []


@pytest.mark.parametrize("backend", list(Backend))
@pytest.mark.parametrize(("go", "target"), [(live, "cell1-host2"), (live, "cell2-host1"), (cold, "cell2-host1")])
def test_nobody_waits_for_a_port_that_is_switched_off(
    cloud: LiveCloud, backend: Backend, go: Callable[[LiveCloud, Any, str], None], target: str
) -> None:
    cloud.option("vif_plugging_is_fatal", True)
    cloud.option("vif_plugging_timeout", 5)
    cloud.option("live_migration_wait_for_vif_plug", True, "compute")
    cloud.parts.devcloud.backends = dict.fromkeys(HOSTS, backend)
    server = cloud.booted_on("cell1-host1", "server", "any.small")
    cloud.admin.network.update_port(port_of(cloud, server), admin_state_up=False)
    go(cloud, server, target)
    assert said(cloud, server) == []
