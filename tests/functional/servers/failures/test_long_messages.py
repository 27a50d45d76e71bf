"""Services and hypervisors say as much as they like: an operation that fails with a long message ends as any other."""

from __future__ import annotations

from typing import Any

import pytest

from causeway.errors import GuestFailed
from causeway.store.api import journal
from tests.functional.servers.moves_cloud import Cloud, until

pytestmark = pytest.mark.embedded("reaches into drivers")

# Longer than what users read of an action, which is a column of 255 characters.
LONG = "The program said why, at length. " * 30


def fails_at_length(cloud: Cloud, host: str, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_arguments: Any, **_named: Any) -> None:
        raise GuestFailed(LONG)

    monkeypatch.setattr(cloud.driver(host), method, fail)


def test_a_move_is_rolled_back(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    server = cloud.boot()
    cloud.without_patience()
    for host in ("cell2-host1", "cell2-host2"):
        fails_at_length(cloud, host, "spawn", monkeypatch)
    cloud.member.compute.resize_server(server.id, "gen2.small")
    cloud.failed(server)
    assert cloud.action(server, "resize").message == LONG[:255]
    assert LONG.startswith(cloud.faults(server)[-1].message)


def test_an_operation_is_rolled_back(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    server = cloud.boot()
    host = cloud.show(server).compute_host
    cloud.without_patience()
    fails_at_length(cloud, host, "export_running_disk", monkeypatch)
    cloud.member.compute.create_server_image(server.id, "never")
    until(
        lambda: journal.of_server(cloud.parts.api_database, server.id)[-1].state,
        lambda state: state == "failed",
        "the image to fail",
    )
    assert cloud.wait(server, "ACTIVE").task_state is None
    assert cloud.action(server, "createImage").message == LONG[:255]
