"""Nova's databases and processes: API, scheduler, super conductor, a conductor for each cell, a compute on each host."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import requests

from tests.functional.processes.own_process import until
from tests.integration.adopt import remote_copies
from tests.integration.adopt.nova_configuration import STATE_PATH, NovaFiles
from tests.integration.real_services import services
from tests.integration.real_services.configuration import PASSWORD, Addresses, render
from tests.integration.real_services.guests import ServicesWithAgents
from tests.integration.real_services.machine import VENV
from tests.integration.real_services.machines import Machines, run

# The newest that Nova 34 has.
MICROVERSION = "2.96"
# What Causeway calls the identity of a host's nova-compute as long as the host is its own.
HELD_IDENTITY = "compute_id.held-by-causeway"
# Seconds. A compute ends when its threads have, some of which wait for others.
TO_END = 60.0
# Of what starts on a busy machine.
PATIENCE = 300.0
_CONFIG = "--config-file"
_POLICY = '"compute:servers:resize:cross_cell": "rule:admin_api"\n'


class Nova:
    """``cells``: cell -> hosts; ``queue``: of RabbitMQ, without the virtual host; ``host_options``: more of all hosts."""

    def __init__(
        self,
        around: ServicesWithAgents,
        machines: Machines,
        *,
        cells: Mapping[str, Sequence[str]],
        port: int,
        queue: str,
        new_database: Callable[[str], str],
        host_options: Mapping[str, Mapping[str, object]],
    ) -> None:
        self._around, self._machines, self._machine = around, machines, around.machine
        self.cells = {cell: tuple(hosts) for cell, hosts in cells.items()}
        self.hosts = {host: cell for cell, hosts in cells.items() for host in hosts}
        self._port = port
        #: of "api", "cell0" and each cell: their URLs
        self.databases = {name: new_database(f"nova_{name}") for name in ("api", "cell0", *cells)}
        self._etc = self._machine.directory / "etc/nova"
        self._files = NovaFiles(
            around.addresses,
            self.databases,
            queue,
            VENV,
            self._etc,
            self._machine.directory / "state/nova",
            host_options,
        )

    @property
    def url(self) -> str:
        return url_of(self._around.addresses, self._port)

    def config_of(self, role: str) -> Path:
        """The nova.conf of "nova" (API, scheduler, super conductor), "conductor-CELL" or "compute-HOST"."""
        return self._etc / f"{role}.conf"

    def home(self, host: str) -> Path:
        """The folder that is `STATE_PATH` on the host."""
        return self._machine.directory / "var-lib-nova" / host

    def neighbour(self, host: str) -> str:
        """Another host of its cell."""
        return next(each for each in self.cells[self.hosts[host]] if each != host)

    def log(self, name: str) -> str:
        """Of a process, as "nova-compute-HOST"; of all its lives."""
        return self._machine.log_file(name).read_text(errors="replace")

    def connection(self, user: str = "admin", project: str = "demo") -> Any:
        """To this API, whatever the catalog has."""
        made = self._around.connection(user, project)
        made.compute.endpoint_override = self.url
        made.compute.default_microversion = MICROVERSION
        return made

    def manage(self, *words: str, config: str = "nova") -> str:
        """What nova-manage says."""
        return self._machine.run([VENV / "bin/nova-manage", _CONFIG, self.config_of(config), *words])

    # making it

    def make_databases(self) -> None:
        """Needs nothing but the database server and `configure`."""
        self.manage("api_db", "sync")
        self.manage("cell_v2", "map_cell0", "--database_connection", self.databases["cell0"])
        with ThreadPoolExecutor(2) as pool:
            names = ["nova", *(f"conductor-{cell}" for cell in self.cells)]
            list(pool.map(lambda name: self.manage("db", "sync", "--local_cell", config=name), names))
        for cell in self.cells:
            urls = (
                "--transport-url",
                f"{self._files.queue}/nova-{cell}",
                "--database_connection",
                self.databases[cell],
            )
            self.manage("cell_v2", "create_cell", "--name", cell, *urls)

    def configure(self) -> None:
        """The files of all roles. The hosts run already."""
        self._etc.mkdir(parents=True)
        (self._files.state / "tmp").mkdir(parents=True)
        shutil.copy(VENV / "etc/nova/api-paste.ini", self._etc)
        write = self._machine.write
        write("etc/nova/policy.yaml", _POLICY)
        write("etc/nova/nova.conf", render(self._files.cloud()))
        for cell in self.cells:
            write(f"etc/nova/conductor-{cell}.conf", render(self._files.conductor(cell)))
        for host, cell in self.hosts.items():
            path = self.config_of(f"compute-{host}")
            address = self._machines.addresses[host]
            options = self._files.compute(self._machines.endpoints[host], cell, address, path)
            write(f"etc/nova/{path.name}", render(options))
        pid_files = {self._machines.addresses[host]: self._machines.endpoints[host].pid_file for host in self.hosts}
        remote_copies.write(self._machine, pid_files)

    def start(self) -> None:
        """All processes, ready to build servers when this returns. The services around are ready, and the databases made."""
        self._create_account()
        self._start_conductors()
        self._start_api()
        for host in self.hosts:
            self._prepare(host)
            self.launch_compute(host)
        self._machine.await_that(self._answers, "nova-api")
        self.await_reports(dict.fromkeys(self.hosts))
        with self.connection() as admin:
            self.manage("cell_v2", "discover_hosts")
            until(
                lambda: self._hosts_with_inventory(admin),
                lambda found: found >= set(self.hosts),
                "inventories",
                PATIENCE,
            )

    # computes

    def stop_compute(self, *hosts: str) -> None:
        """Their guests stay. Not running: nothing."""
        running = [f"nova-compute-{host}" for host in hosts if self.runs_compute(host)]
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda name: self._machine.end(name, TO_END), running))

    def kill_compute(self, host: str) -> None:
        """SIGKILL. Its guests stay."""
        self._machine.kill(f"nova-compute-{host}")

    def start_compute(self, *hosts: str) -> None:
        """They have reported when this returns."""
        before = self.reports(*hosts)
        for host in hosts:
            self.launch_compute(host)
        self.await_reports(before)

    def reports(self, *hosts: str) -> dict[str, str | None]:
        """When the compute of each host has reported last; None: it is down."""
        with self.connection() as admin:
            return {host: self._reported(admin, host) for host in hosts}

    def await_reports(self, before: Mapping[str, str | None]) -> None:
        """The next ones."""
        with self.connection() as admin:
            for host, last in before.items():
                self._await_report(admin, host, last)

    def launch_compute(self, host: str) -> None:
        """Without waiting for anything: it may refuse to start."""
        command: list[str | Path] = [VENV / "bin/nova-compute", _CONFIG, self.config_of(f"compute-{host}")]
        self._machine.start(f"nova-compute-{host}", [*self._machines.inside(host), *command])

    def regain_hosts(self) -> None:
        """Every host's compute runs when this returns, also after a test that could not hand its hosts back."""
        for host in self.hosts:
            held = self.home(host) / HELD_IDENTITY
            if held.exists():
                held.rename(held.with_name("compute_id"))
        self.start_compute(*(host for host in self.hosts if not self.runs_compute(host)))

    def runs_compute(self, host: str) -> bool:
        return self._machine.is_running(f"nova-compute-{host}")

    def _prepare(self, host: str) -> None:
        """The host sees `STATE_PATH` of its own."""
        home = self.home(host)
        for folder in ("instances", "tmp"):
            (home / folder).mkdir(parents=True)
        # It stays, empty: without it the hosts of others on this machine would lose what they have there.
        STATE_PATH.mkdir(parents=True, exist_ok=True)
        run(*self._machines.inside(host), "mount", "--bind", str(home), str(STATE_PATH))

    def _await_report(self, admin: Any, host: str, before: str | None) -> None:
        name = f"nova-compute-{host}"

        def has_reported() -> bool:
            assert self._machine.is_running(name), f"{name} ended: {self.log(name)[-3000:]}"
            return self._reported(admin, host) not in (None, before)

        until(has_reported, bool, f"{name} to report", PATIENCE)

    def _reported(self, admin: Any, host: str) -> str | None:
        """When the host's compute has reported last."""
        found = [each for each in admin.compute.services(binary="nova-compute", host=host) if each.state == "up"]
        return str(found[0].updated_at) if found else None

    def _hosts_with_inventory(self, admin: Any) -> set[str]:
        # A first report may fail: Placement had another one at the same moment. The next one follows.
        placement = admin.placement
        return {
            each.name for each in placement.resource_providers() if list(placement.resource_provider_inventories(each))
        }

    # the others

    def _start_conductors(self) -> None:
        start, conductor = self._machine.start, VENV / "bin/nova-conductor"
        start("nova-conductor", [conductor, _CONFIG, self.config_of("nova")])
        for cell in self.cells:
            start(f"nova-conductor-{cell}", [conductor, _CONFIG, self.config_of(f"conductor-{cell}")])
        start("nova-scheduler", [VENV / "bin/nova-scheduler", _CONFIG, self.config_of("nova")])

    def _start_api(self) -> None:
        command: list[str | Path] = [
            *(VENV / "bin/gunicorn", "--chdir", self._machine.directory, "--pythonpath", services.HERE),
            *(
                "--worker-class",
                "gthread",
                "--workers",
                "1",
                "--threads",
                "8",
                "--timeout",
                "300",
                "--keep-alive",
                "65",
            ),
            *("--bind", f"{self._around.addresses.host}:{self._port}", "wsgi:application"),
        ]
        where = {"SERVICE": "nova.wsgi.osapi_compute", "OS_NOVA_CONFIG_DIR": str(self._etc)}
        self._machine.start("nova-api", command, where)

    def _answers(self) -> bool:
        try:
            return requests.get(self.url.removesuffix("/v2.1"), timeout=30).status_code in (200, 300)
        except requests.RequestException:
            return False

    def _create_account(self) -> None:
        with self._around.connection(project="admin") as cloud:
            identity = cloud.identity
            project = identity.find_project("service")
            user = identity.create_user(
                name="nova", password=PASSWORD, domain_id="default", default_project_id=project.id
            )
            for role in ("admin", "service"):
                identity.assign_project_role_to_user(project, user, identity.find_role(role))


def url_of(addresses: Addresses, port: int) -> str:
    return f"http://{addresses.host}:{port}/v2.1"
