"""RabbitMQ for a test: one that is there (CAUSEWAY_TEST_RABBIT_URL), or Debian's, started for the test alone."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.ports import free_ports
from tests.process_trees import kill_all, signal_all

SERVER = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
# "services" is for the services around us
HOSTS = ("cloud", "cell1", "cell2", "services")
START_SECONDS = 90


def why_not() -> str | None:
    """Why there can be no RabbitMQ here; None if there can."""
    if os.environ.get("CAUSEWAY_TEST_RABBIT_URL") or (SERVER.exists() and shutil.which("epmd")):
        return None
    return (
        "no RabbitMQ: install rabbitmq-server, or set CAUSEWAY_TEST_RABBIT_URL to rabbit://user:password@host:port, with"
        f" the virtual hosts {', '.join(HOSTS)}"
    )


@dataclass(frozen=True)
class Queue:
    """``host``: the virtual one."""

    host: str
    name: str
    messages: int
    consumers: int


class Broker:
    """A RabbitMQ of a test's own: it may be stopped and started again, with the same port and what it keeps on disk."""

    def __init__(self, directory: Path, address: str = "127.0.0.1", hosts: Sequence[str] = HOSTS) -> None:
        """``address`` is where it listens, ``hosts`` are its virtual ones."""
        directory.mkdir()
        self._directory, self._address, self._hosts = directory, address, tuple(hosts)
        self._port, distribution, self._mapper = free_ports(3)
        self.url = f"rabbit://causeway:secret@{address}:{self._port}"
        self._processes: list[subprocess.Popen[bytes]] = []
        (directory / "definitions.json").write_text(json.dumps(_definitions("causeway", "secret", hosts)))
        (directory / "rabbitmq.conf").write_text(
            f"listeners.tcp.1 = {address}:{self._port}\nload_definitions = {directory}/definitions.json\n"
        )
        (directory / "plugins").write_text("[].\n")
        self._environment = {
            "HOME": str(directory),
            "ERL_CRASH_DUMP": str(directory / "crash"),
            "PATH": os.environ["PATH"],
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_PORT": str(self._mapper),
            "RABBITMQ_NODENAME": f"causeway-{self._port}@localhost",
            "RABBITMQ_DIST_PORT": str(distribution),
            "RABBITMQ_MNESIA_BASE": str(directory / "db"),
            "RABBITMQ_LOG_BASE": str(directory / "log"),
            "RABBITMQ_CONFIG_FILE": str(directory / "rabbitmq.conf"),
            "RABBITMQ_CONF_ENV_FILE": str(directory / "none"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(directory / "plugins"),
            "RABBITMQ_PID_FILE": str(directory / "pid"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1} +S 2:2 +sbwt none",
        }

    def add_account(self, name: str, password: str, rights: Mapping[str, list[dict[str, str]]]) -> str:
        """Its URL. Before `start`; ``rights``: definitions of permissions of the account."""
        path = self._directory / "definitions.json"
        definitions = json.loads(path.read_text())
        definitions["users"] += _definitions(name, password, ())["users"]
        for kind, entries in rights.items():
            definitions.setdefault(kind, []).extend(entries)
        path.write_text(json.dumps(definitions))
        return f"rabbit://{name}:{password}@{self._address}:{self._port}"

    def start(self) -> None:
        """Serves when this returns."""
        output, environment = self._directory / "output", self._environment
        with output.open("ab") as file:
            # Erlang's name server would be left behind if RabbitMQ started it.
            more: dict[str, Any] = {"env": environment, "stdout": file, "stderr": file, "start_new_session": True}
            names = subprocess.Popen(["epmd", "-port", str(self._mapper)], **more)
            server = subprocess.Popen([SERVER], **more)
        self._processes = [server, names]
        _wait_for(self._address, self._port, server, output)

    def stop(self) -> None:
        """Stopped before: nothing."""
        if not self._processes:
            return
        (server, names), self._processes = self._processes, []
        os.killpg(server.pid, signal.SIGTERM)
        try:
            server.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait(10)
        names.terminate()
        names.wait(10)

    def kill(self) -> None:
        """kill -9: what it had not written is gone."""
        for process in self._processes:
            kill_all(process.pid)
            process.wait(10)
        self._processes = []

    def freeze(self) -> None:
        """It keeps its connections, and answers nobody."""
        signal_all(self._processes[0].pid, signal.SIGSTOP)

    def thaw(self) -> None:
        signal_all(self._processes[0].pid, signal.SIGCONT)

    def queues(self) -> list[Queue]:
        """All that there are, in every virtual host."""
        return [queue for host in self._hosts for queue in self._queues_of(host)]

    def control(self, *words: str) -> str:
        """What rabbitmqctl says; raises CalledProcessError if it fails."""
        return subprocess.run(
            [str(SERVER.with_name("rabbitmqctl")), "--quiet", *words],
            env=self._environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=START_SECONDS,
        ).stdout

    def _queues_of(self, host: str) -> list[Queue]:
        said = self.control("--formatter=json", "list_queues", "-p", host, "name", "messages", "consumers")
        return [Queue(host, each["name"], each["messages"], each["consumers"]) for each in json.loads(said)]


@contextmanager
def rabbit(directory: Path, address: str = "127.0.0.1", hosts: Sequence[str] = HOSTS) -> Iterator[str]:
    """The URL of a RabbitMQ with these virtual hosts, without the virtual host; one of our own listens on ``address``."""
    given = os.environ.get("CAUSEWAY_TEST_RABBIT_URL")
    if given:
        yield given.rstrip("/")
        return
    with own_broker(directory, address, hosts) as broker:
        yield broker.url


@contextmanager
def own_broker(directory: Path, address: str = "127.0.0.1", hosts: Sequence[str] = HOSTS) -> Iterator[Broker]:
    """A RabbitMQ that serves."""
    broker = Broker(directory, address, hosts)
    try:
        broker.start()
        yield broker
    finally:
        broker.stop()


def _definitions(user: str, password: str, hosts: Sequence[str]) -> dict[str, Any]:
    salt = b"salt"
    digest = base64.b64encode(salt + hashlib.sha256(salt + password.encode()).digest()).decode()
    everything = {"configure": ".*", "write": ".*", "read": ".*"}
    return {
        "users": [
            {
                "name": user,
                "password_hash": digest,
                "hashing_algorithm": "rabbit_password_hashing_sha256",
                "tags": "",
            }
        ],
        "vhosts": [{"name": name} for name in hosts],
        "permissions": [{"user": user, "vhost": name, **everything} for name in hosts],
    }


def _wait_for(address: str, port: int, server: subprocess.Popen[bytes], output: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while True:
        try:
            socket.create_connection((address, port), timeout=5).close()
            return
        except OSError:
            said = output.read_text(errors="replace")[-2000:]
            assert server.poll() is None and time.monotonic() < end, f"RabbitMQ does not start: {said}"
            time.sleep(0.1)
