"""The proxy of consoles in a process of its own: RabbitMQ and the databases are all that it shares with the others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.functional.processes.deployment import OPTIONS, Deployment
from tests.functional.processes.rabbit import rabbit, why_not
from tests.functional.servers.console_socket import Console
from tests.ports import free_ports

pytestmark = [pytest.mark.timeout(400), pytest.mark.skipif(why_not() is not None, reason=str(why_not()))]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    directory = tmp_path_factory.mktemp("cloud")
    (port,) = free_ports(1)
    options = {
        **OPTIONS,
        "serial_console": {"enabled": "true", "base_url": f"ws://127.0.0.1:{port}/"},
        "console": {"check_interval": 0.5},
    }
    with rabbit(directory / "rabbit") as url:
        deployment = Deployment(directory, url, options=options)
        try:
            deployment.start()
            deployment.start_console_proxy(port)
            yield deployment
        finally:
            deployment.kill()


@pytest.fixture
def cloud(running: Deployment) -> Iterator[Deployment]:
    yield running
    running.delete_servers()


def url_of(cloud: Deployment, server: Any) -> str:
    body = {"remote_console": {"protocol": "serial", "type": "serial"}}
    answer = cloud.member.compute.post(f"/servers/{server.id}/remote-consoles", json=body, microversion="2.96")
    assert answer.status_code == 200, answer.text
    return str(answer.json()["remote_console"]["url"])


def test_consoles_follow_nobody_and_say_so(cloud: Deployment) -> None:
    server = cloud.boot()
    url = url_of(cloud, server)
    console = Console(url)
    console.reads(b"CAUSEWAY-READY\r\n")
    assert cloud.member.compute.post(f"/servers/{server.id}/action", json={"resize": {"flavorRef": "large"}}).ok
    code, reason = console.ended()
    assert (code, reason) == (
        1008,
        f"The server has moved: ask for a new console (POST /servers/{server.id}/remote-consoles)",
    )
    cloud.wait(server, "VERIFY_RESIZE")
    there = Console(url_of(cloud, server))
    there.reads(b"CAUSEWAY-READY\r\n")
    token = url.rpartition("=")[2]
    assert not [name for name, process in cloud.processes.items() if token in process.log]
    proxy = cloud.processes.pop("console-proxy")
    proxy.terminate()
    assert there.ended() == (1008, "The proxy of consoles is shut down: ask for a new console")
    assert proxy.wait_ended() == 0
