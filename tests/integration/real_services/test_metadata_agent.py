"""The metadata service in a process of its own, behind Neutron's metadata agent, which signs with its own code."""

from __future__ import annotations

import base64
import http.client
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from causeway.embedded.cloud import EmbeddedCloud
from tests.functional.servers.moves_cloud import Cloud
from tests.integration.real_services.machine import VENV
from tests.ports import free_port

AGENT = Path(__file__).parent / "metadata_agent.py"
SECRET, TIMEOUT = "of-agent-and-service", 30
USER_DATA = bytes(range(256))

pytestmark = pytest.mark.skipif(
    not (VENV / "bin/neutron-rpc-server").exists(),
    reason="the real services are not installed: make integration does that",
)


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    embedded = EmbeddedCloud(tmp_path_factory.mktemp("cloud"), port=0, cells=2)
    embedded.start()
    yield Cloud(embedded)
    embedded.stop()


@contextmanager
def started(command: list[str | Path], log: Path, environment: dict[str, str]) -> Iterator[None]:
    """A process, from the moment when it says that it is ready."""
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [str(part) for part in command], stdout=subprocess.PIPE, stderr=errors, text=True, env=environment
        )
    try:
        assert process.stdout is not None
        assert any("ready" in line for line in process.stdout), log.read_text()
        yield
    finally:
        process.terminate()
        process.communicate(timeout=TIMEOUT)


@pytest.fixture(scope="module")
def service(cloud: Cloud, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of `causeway metadata`, which needs the API database and nothing else."""
    folder, port = tmp_path_factory.mktemp("service"), free_port()
    (folder / "causeway.conf").write_text(
        f"[api_database]\nconnection = {cloud.embedded.state.database('api')}\n"
        f"[api]\nmetadata_cache_expiration = 0\n"
        f"[neutron]\nservice_metadata_proxy = true\nmetadata_proxy_shared_secret = {SECRET}\n"
    )
    command: list[str | Path] = [
        Path(sys.executable).parent / "causeway",
        "metadata",
        "--config-file",
        folder / "causeway.conf",
    ]
    with started([*command, "--workers", "1", "--bind", f"127.0.0.1:{port}"], folder / "log", {**os.environ}):
        yield port


@contextmanager
def agent(folder: Path, service: int, ports: list[dict[str, str]], secret: str = SECRET) -> Iterator[Path]:
    """The agent's socket."""
    (folder / "ports.json").write_text(json.dumps(ports))
    (folder / "metadata_agent.ini").write_text(
        f"[DEFAULT]\nnova_metadata_host = 127.0.0.1\nnova_metadata_port = {service}\n"
        f"metadata_proxy_shared_secret = {secret}\nmetadata_proxy_socket = {folder}/proxy\n"
    )
    command: list[str | Path] = [
        VENV / "bin/python",
        "-W",
        "ignore",
        AGENT,
        folder / "metadata_agent.ini",
        folder / "ports.json",
    ]
    # Its interpreter has packages of its own.
    with started(command, folder / "log", {"PATH": os.environ["PATH"]}):
        yield folder / "proxy"


class Guest(http.client.HTTPConnection):
    """Speaks to the agent's socket, with what haproxy adds of the port that it heard the guest on."""

    def __init__(self, proxy: Path, port: dict[str, str]) -> None:
        super().__init__("169.254.169.254", timeout=TIMEOUT)
        self._proxy, self._port = proxy, port

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(TIMEOUT)
        self.sock.connect(str(self._proxy))

    def ask(self, path: str, method: str = "GET", body: bytes | None = None) -> tuple[int, bytes]:
        added = {"X-Forwarded-For": self._port["address"], "X-Neutron-Network-ID": self._port["network_id"]}
        self.request(method, path, body, added)
        answer = self.getresponse()
        content = answer.read()
        self.close()
        return answer.status, content


def port_of(cloud: Cloud, server: Any) -> dict[str, str]:
    """As Neutron's RPC shows it."""
    (port,) = cloud.member.network.ports(device_id=server.id)
    return {
        "device_id": server.id,
        "project_id": cloud.member.current_project_id,
        "network_id": port.network_id,
        "address": port.fixed_ips[0]["ip_address"],
    }


def test_a_guest_reads_its_metadata_through_the_agent(cloud: Cloud, service: int, tmp_path: Path) -> None:
    server = cloud.boot(name="web", user_data=base64.b64encode(USER_DATA).decode(), metadata={"purpose": "test"})
    port = port_of(cloud, server)
    with agent(tmp_path, service, [port]) as proxy:
        guest = Guest(proxy, port)
        status, reported = guest.ask("/openstack/latest/meta_data.json")
        assert status == 200
        about = json.loads(reported)
        assert (about["uuid"], about["name"], about["meta"]) == (server.id, "web", {"purpose": "test"})
        assert guest.ask("/openstack/latest/user_data") == (200, USER_DATA)
        assert guest.ask("/latest/meta-data/local-ipv4") == (200, port["address"].encode())
        assert guest.ask("/openstack/latest/nothing")[0] == 404

        password = "/openstack/latest/password"
        assert guest.ask(password, "POST", b"Y2lwaGVy")[0] == 200
        assert guest.ask(password) == (200, b"Y2lwaGVy")
        assert guest.ask(password, "POST", b"YW5vdGhlcg==")[0] == 409
        assert guest.ask(password, "PUT", b"YW5vdGhlcg==")[0] == 400

        cloud.resized(server)
        cloud.confirmed(server)
        assert guest.ask("/latest/meta-data/instance-type") == (
            200,
            cloud.show(server).flavor["original_name"].encode(),
        )
        assert guest.ask(password) == (200, b"Y2lwaGVy")
        cloud.member.compute.delete_server(server.id)
        cloud.member.compute.wait_for_delete(server)
        assert guest.ask("/openstack/latest/meta_data.json")[0] == 404


def test_an_agent_with_another_secret_is_refused(cloud: Cloud, service: int, tmp_path: Path) -> None:
    server = cloud.boot()
    port = port_of(cloud, server)
    with agent(tmp_path, service, [port], secret="another") as proxy:
        status, reported = Guest(proxy, port).ask("/openstack/latest/meta_data.json")
    assert status == 403 and server.id.encode() not in reported
