"""A cloud to break of which everything is a process: roles, devcloud, a Placement of its own, RabbitMQ, PostgreSQL or MariaDB.

Each can be killed, frozen and stopped by itself, while all others continue.
"""

from __future__ import annotations

import configparser
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import requests

from tests.faults.clouds.roles_site import FilledDeployment
from tests.faults.clouds.site import Site
from tests.functional.processes.deployment import Deployment
from tests.functional.processes.own_process import Process, until
from tests.functional.processes.rabbit import own_broker
from tests.integration.database_servers import own_server
from tests.ports import free_port

BIN = Path(sys.executable).parent
PLACEMENT = "placement"
# Seconds within which whoever is started again and again has found what it needs.
STARTS = 60.0
# What others of the same name leave in RabbitMQ when they are killed is gone so many seconds later.
QUEUE_SECONDS = 20
# An outage takes some seconds: what waits for it does not fail sooner.
OPTIONS: dict[str, dict[str, Any]] = {
    "DEFAULT": {
        "report_interval": 3,
        "service_down_time": 20,
        "rpc_response_timeout": 10,
        "shelved_offload_time": -1,
    },
    "moves": {"lease": 3.0, "patience": 60.0, "patience_while_off": 60.0, "attempts": 5, "stuck_retry_interval": 1.0},
    "oslo_messaging_rabbit": {
        "heartbeat_timeout_threshold": 10,
        "rabbit_transient_queues_ttl": QUEUE_SECONDS,
        "rabbit_interval_max": 3,
    },
}


class PlacementProcess(Process):
    """The real Placement, served by gunicorn."""

    program = BIN / "gunicorn"

    def __init__(self, directory: Path, name: str, *arguments: str, prefix: Sequence[str] = ()) -> None:
        super().__init__(directory, name, *arguments, prefix=prefix)
        bind = next(word for word in arguments if word.startswith("--bind="))
        self._url = f"http://{bind.removeprefix('--bind=')}"

    def wait_ready(self) -> str:
        until(lambda: self.has_ended or _answers(self._url), bool, f"{self.name} to answer")
        assert not self.has_ended, f"{self.name} ended: {self.log[-3000:]}"
        return self._url


class ProcessesDeployment(FilledDeployment):
    """With a Placement that can be killed by itself, in place of devcloud's."""

    placement_url = ""

    def start_placement(self, url: str) -> None:
        """``url``: of its database. It serves when this returns."""
        folder = self.directory / PLACEMENT
        folder.mkdir()
        services = configparser.ConfigParser(interpolation=None)
        services.read(self.directory / "services.conf")
        written = configparser.ConfigParser(interpolation=None)
        written["placement_database"] = {"connection": url}
        written["api"] = {"auth_strategy": "keystone"}
        written["keystone_authtoken"] = dict(services["keystone_authtoken"])
        with (folder / "placement.conf").open("w") as file:
            written.write(file)
        command = [str(BIN / "placement-manage"), "--config-dir", str(folder), "db", "sync"]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
        address = self.placement_url.removeprefix("http://")
        workers = ("--workers=1", "--threads=8", f"--bind={address}", "--timeout=120")
        self.start_other(PLACEMENT, PlacementProcess, *workers, "placement.wsgi.api:application").wait_ready()

    def prefix(self, name: str) -> list[str]:
        return ["env", f"OS_PLACEMENT_CONFIG_DIR={self.directory / PLACEMENT}"] if name == PLACEMENT else []


class ProcessesSite(Site):
    """Use it as a context manager; needs RabbitMQ and the database server ``kind``."""

    def __init__(self, directory: Path, *, kind: str = "postgresql") -> None:
        super().__init__(directory)
        self.kind = kind
        self.options = _merged(self.options, OPTIONS)
        # The host whose machine is off.
        self.dead: str | None = None

    @property
    def api_url(self) -> str:
        return self.deployment.databases["api"]

    def start(self) -> None:
        cells = {cell: [host for host in self.hosts if host.startswith(cell)] for cell in ("cell1", "cell2")}
        self.state.path.mkdir(parents=True, exist_ok=True)
        with ExitStack() as cleanup:
            new_database, self.database = cleanup.enter_context(own_server(self.kind))
            self.broker = cleanup.enter_context(own_broker(self.state.path / "rabbit"))
            self.placement_url = f"http://127.0.0.1:{free_port()}"
            # Both ours and the users': the catalog names devcloud's own.
            self.options["placement"] = {"endpoint_override": self.placement_url}
            self.connect_options = {"placement_endpoint_override": self.placement_url}
            self.placement_database = new_database(PLACEMENT)
            self.deployment = ProcessesDeployment(
                self.state.path,
                self.broker.url,
                cells=cells,
                options=self.options,
                new_database=new_database,
                surround=self._surround,
                cell_conductors=True,
            )
            self.deployment.placement_url = self.placement_url
            cleanup.callback(self.deployment.kill)
            self.deployment.start()
            self._cleanup = cleanup.pop_all()

    def _surround(self, deployment: Deployment) -> None:
        assert isinstance(deployment, ProcessesDeployment)
        deployment._start_devcloud()
        deployment.start_placement(self.placement_database)

    def stop(self) -> None:
        self._cleanup.close()

    @property
    def processes(self) -> dict[str, Process]:
        return self.deployment.processes

    def start_again(self, name: str) -> None:
        """A process that was killed; it serves when this returns. One that ends because it needs something that is not there
        is started again, as systemd does."""
        end = time.monotonic() + STARTS
        while True:
            process = self.deployment.restart(name)
            try:
                process.wait_ready()
                return
            except AssertionError:
                if not process.has_ended or time.monotonic() > end:
                    raise

    def await_api(self) -> None:
        until(self.deployment._healthy, bool, "the API to answer")

    def kill_host(self, host: str) -> None:
        """Its machine is off, and its operator says so."""
        self.processes[host].kill()
        self.dead = host
        self.switch_off(host)
        self.force_down(host, True)

    def revive_host(self, host: str) -> None:
        self.start_again(host)
        self.force_down(host, False)
        self.dead = None

    def double_starts(self) -> list[str]:
        found = []
        for host in self.hosts:
            lines = self.processes[host].log.splitlines()
            marks = [line for line in lines if "while another host runs it" in line]
            found += [line.split("Guest ")[1].split()[0] for line in marks]
        return found


def _merged(*several: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for options in several:
        for group, values in options.items():
            found[group] = {**found.get(group, {}), **values}
    return found


def _answers(url: str) -> bool:
    try:
        return requests.get(url, timeout=10).status_code < 500
    except requests.RequestException:
        return False
