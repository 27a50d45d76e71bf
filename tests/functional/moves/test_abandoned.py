"""A conductor dies while it builds or deletes a server, or does something else with it: another takes that up.

Two conductors share the work. One that dies is a thread that ends where it stands: nobody hears of it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import openstack.exceptions
import pytest
from moves_cloud import Cloud, another_conductor, until

from causeway import errors
from causeway.audit import audit_embedded
from causeway.conductor import recovery
from causeway.conductor.recovery import Recovery
from causeway.conductor.service import ConductorService
from causeway.rpc.conductor import ConductorClient
from causeway.rpc.transport import Outgoing, Verdict
from causeway.store.api import mappings

CLOUD: dict[str, Any] = {"overrides": {"DEFAULT": {"report_interval": 1, "service_down_time": 2}}}


class ProcessDiedError(BaseException):
    """What nobody catches: as if the process had ended here."""


@pytest.fixture(scope="module", autouse=True)
def other(module_cloud: Cloud) -> Iterator[ConductorService]:
    with another_conductor(module_cloud) as conductor:
        yield conductor


def at_first(cloud: Cloud, method: str, act: Any, topic: str | None = None) -> None:
    """Does something when a method is called for the first time."""
    left = [act]

    def on_send(message: Outgoing) -> Verdict:
        if message.method == method and topic in (None, message.topic) and left:
            left.pop()()
        return Verdict.DELIVER

    cloud.parts.around.transports.on_send = on_send


def die() -> None:
    raise ProcessDiedError


def create(cloud: Cloud) -> Any:
    return cloud.member.compute.create_server(
        name="server", flavor_id="any.small", image_id=cloud.image_id, networks=[{"uuid": cloud.network_id}]
    )


def check(cloud: Cloud, server: Any) -> None:
    """It runs on one host, and all agree about it."""
    found = cloud.show(server)
    assert cloud.hosts_of(server) == {found.compute_host: "guest"}
    assert audit_embedded(cloud.parts, pause=0.01).disagreements == []


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_server_whose_conductor_died_before_it_had_a_host_is_built(cloud: Cloud) -> None:
    at_first(cloud, "select_destinations", die)
    server = create(cloud)
    cloud.wait(server, "ACTIVE")
    check(cloud, server)


def test_a_server_whose_conductor_died_while_its_guest_was_made_says_so_and_can_be_deleted(cloud: Cloud) -> None:
    at_first(cloud, "build_instance", die, topic="compute")
    server = create(cloud)
    found = cloud.wait(server, "ERROR")
    assert "was stopped while it worked on this server" in found.fault["message"]
    cloud.member.compute.delete_server(server.id)
    until(lambda: cloud.admin.compute.find_server(server.id), lambda found: found is None, "the server to go")
    assert audit_embedded(cloud.parts, pause=0.01).disagreements == []


def test_a_server_whose_conductor_died_while_it_was_deleted_is_deleted(cloud: Cloud) -> None:
    server = cloud.boot()
    at_first(cloud, "destroy_instance", die)
    cloud.member.compute.delete_server(server.id)
    until(lambda: cloud.admin.compute.find_server(server.id), lambda found: found is None, "the server to go")
    assert cloud.hosts_of(server) == {}
    assert audit_embedded(cloud.parts, pause=0.01).disagreements == []


def test_a_task_that_was_left_ends_with_the_state_that_the_guest_has(cloud: Cloud) -> None:
    server = cloud.boot()
    at_first(cloud, "power_off_instance", die)
    cloud.member.compute.stop_server(server.id)
    until(lambda: cloud.show(server).task_state, lambda task: task is None, "the task to end")
    assert cloud.show(server).status == "ACTIVE"
    check(cloud, server)


def test_work_that_takes_long_is_left_to_who_does_it(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    server = cloud.boot()
    looks: list[int] = []
    find = recovery.abandoned

    def counted(*arguments: Any) -> Any:
        looks.append(1)
        return find(*arguments)

    monkeypatch.setattr(recovery, "abandoned", counted)

    def wait() -> None:
        until(lambda: len(looks), lambda count: count >= 6, "the conductors to look a few times")

    at_first(cloud, "power_off_instance", wait)
    cloud.member.compute.stop_server(server.id)
    until(lambda: looks, bool, "a conductor to look")
    assert cloud.show(server).task_state == "powering-off"
    cloud.wait(server, "SHUTOFF")
    assert cloud.record(server, "cell1").task_state is None


def test_who_was_only_thought_to_be_dead_does_no_harm(cloud: Cloud, other: ConductorService) -> None:
    """It was about to choose a host when another took it for dead and built the server."""
    reached, opened = threading.Event(), threading.Event()

    def hold() -> None:
        reached.set()
        assert opened.wait(30)

    at_first(cloud, "select_destinations", hold)
    server = create(cloud)
    assert reached.wait(10)
    services = other._services
    conductor = ConductorClient(cloud.parts.around.transports.get(cloud.parts.conf.transport_url))
    hasty = Recovery(services, conductor, set)
    hasty._others = list  # type: ignore[method-assign]
    services.stopping.wait(2)
    hasty.look()
    cloud.wait(server, "ACTIVE")
    before = (cloud.hosts_of(server), cloud.allocations(server.id), cloud.show(server).updated_at)
    opened.set()
    own = cloud.parts.conductor
    until(lambda: server.id in own._in_hand() | other._in_hand(), lambda busy: not busy, "the slow one to end")
    assert (cloud.hosts_of(server), cloud.allocations(server.id), cloud.show(server).updated_at) == before
    check(cloud, server)


def test_a_server_whose_deletion_was_only_half_asked_for_leaves_nothing(cloud: Cloud, monkeypatch: Any) -> None:
    """The API lost its database (or died) when the server's task said so, and before its mapping did."""
    server = cloud.boot()

    def fail(*_arguments: Any, **_options: Any) -> None:
        raise errors.DatabaseFailed("The database is away.")

    with monkeypatch.context() as patch:
        patch.setattr(mappings, "queue_for_delete", fail)
        with pytest.raises(openstack.exceptions.SDKException):
            cloud.member.compute.delete_server(server.id)
    until(lambda: cloud.hosts_of(server), lambda hosts: not hosts, "the guest to be gone")
    database = cloud.parts.api_database
    until(lambda: mappings.get(database, server.id).queued_for_delete, bool, "the mapping to say so")
    assert audit_embedded(cloud.parts, pause=0.01).disagreements == []
