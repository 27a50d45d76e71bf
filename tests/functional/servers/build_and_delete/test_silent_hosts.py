"""The message queue loses what hosts report and what the scheduler is asked: creates wait for its return, and not for long."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from causeway.rpc.client import RpcClient
from causeway.rpc.transport import Outgoing, Verdict
from causeway.store.api import journal
from causeway.store.cell_tables import Services
from causeway.store.database import utcnow
from tests.functional.servers.moves_cloud import Cloud, until

CLOUD: dict[str, Any] = {"overrides": {"DEFAULT": {"report_interval": 1}}}
pytestmark = pytest.mark.embedded("loses messages of this process")

SERVICES: Any = Services.__table__


class Queue:
    """Loses the messages of some methods."""

    def __init__(self) -> None:
        self.loses: set[str] = set()

    def __call__(self, message: Outgoing) -> Verdict:
        return Verdict.LOSE_REQUEST if message.method in self.loses else Verdict.DELIVER


@pytest.fixture
def queue(cloud: Cloud) -> Iterator[Queue]:
    transports, queue = cloud.embedded.around.transports, Queue()
    before, transports.on_send = transports.on_send, queue
    yield queue
    transports.on_send = before


def are_silent(cloud: Cloud, hosts: list[str], seconds: float) -> None:
    """These hosts reported so long ago."""
    for cell in ("cell1", "cell2"):
        with cloud.cell(cell).write() as connection:
            seen = {"last_seen_up": utcnow() - timedelta(seconds=seconds)}
            connection.execute(sa.update(SERVICES).where(SERVICES.c.host.in_(hosts)).values(**seen))


def build(cloud: Cloud, server: Any) -> Any:
    return journal.of_server(cloud.parts.api_database, server.id)[-1]


def request(cloud: Cloud) -> Any:
    return cloud.member.compute.create_server(
        name="waits",
        image_id=cloud.image_id,
        flavor_id=cloud.member.compute.find_flavor("any.small").id,
        networks=[{"uuid": cloud.network_id}],
    )


def test_a_create_waits_until_hosts_that_fell_silent_together_report_again(cloud: Cloud, queue: Queue) -> None:
    queue.loses = {"report_host"}
    are_silent(cloud, list(cloud.parts.computes), 100)
    server = request(cloud)
    waiting = until(
        lambda: build(cloud, server).steps, lambda steps: bool(steps and steps[-1].error), "the build to find no host"
    )
    why = waiting[-1].error
    assert "are down" in why["message"] and "stopped reporting at the same time" in why["details"]
    assert cloud.show(server).status == "BUILD"
    queue.loses = set()
    cloud.wait(server, "ACTIVE")


def test_the_scheduler_is_asked_again_after_ten_seconds_of_silence(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    silences = []
    call = RpcClient.call

    def look(self: RpcClient, context: Any, method: str, **options: Any) -> Any:
        if method == "select_destinations":
            silences.append(options["silence"])
        return call(self, context, method, **options)

    # Hosts may still be silent from the test before: then a build waits, and asks more than once.
    cloud.boot()
    monkeypatch.setattr(RpcClient, "call", look)
    cloud.boot()
    assert silences == [10.0]
