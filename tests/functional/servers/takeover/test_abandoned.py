"""A conductor dies while it does something with a server that is no operation of the journal: another takes that up.

Two conductors share the work. One that dies is a thread that ends where it stands: nobody hears of it.
"""

from __future__ import annotations

from typing import Any

import pytest

from causeway.audit import audit_embedded
from causeway.conductor.upkeep import recovery
from causeway.rpc.transport import Outgoing, Verdict
from tests.functional.servers.moves_cloud import Cloud, until

CLOUD: dict[str, Any] = {"overrides": {"DEFAULT": {"report_interval": 1}, "conductor": {"recovery_interval": 2}}}
pytestmark = [pytest.mark.embedded("an API and a conductor of this process die"), pytest.mark.usefixtures("other")]


class ProcessDiedError(BaseException):
    """What nobody catches: as if the process had ended here."""


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


def test_a_task_that_was_left_ends_with_the_state_that_the_guest_has(cloud: Cloud) -> None:
    server = cloud.boot()
    at_first(cloud, "power_off_instance", die)
    cloud.member.compute.stop_server(server.id)
    until(lambda: cloud.show(server).task_state, lambda task: task is None, "the task to end")
    assert cloud.show(server).status == "ACTIVE"
    check(cloud, server)


def test_work_that_takes_long_is_left_to_its_worker(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
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
