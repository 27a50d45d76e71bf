"""A cloud of many processes, as an operator starts it: devcloud, API, two conductors, scheduler, computes in two cells.

Nothing is between the processes but files of configuration, RabbitMQ, HTTP and (not for computes) databases.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import openstack
import requests
import sqlalchemy as sa
import yaml

from causeway.conf import MODULES
from causeway.store.api import journal
from causeway.store.database import Database
from tests.functional.processes.own_process import CAUSEWAY, PATIENCE, Process, until
from tests.ports import free_ports

LEASE = 3
CONDUCTORS = ("conductor1", "conductor2")
# cell -> hosts
CELLS = {"cell1": ["host1"], "cell2": ["host2"]}
OPTIONS: dict[str, dict[str, Any]] = {
    "DEFAULT": {"report_interval": 2, "rpc_response_timeout": 20},
    "moves": {"lease": LEASE},
    "fault_injection": {"enabled": True},
}

# Options that have a line for each of their values.
A_LINE_EACH = {
    option.dest for module in MODULES for options in module.OPTS.values() for option in options if option.multi
}


def as_text(name: str, value: Any) -> str:
    """An option's value in a file; further lines name it again."""
    between = f"\n{name} = " if name in A_LINE_EACH else ","
    return between.join(value) if isinstance(value, list) else str(value)


class Deployment:
    """``member`` and ``admin`` are openstacksdk connections."""

    compute_driver = "simulated"

    def __init__(
        self,
        directory: Path,
        rabbit: str,
        *,
        cells: Mapping[str, Sequence[str]] = CELLS,
        options: Mapping[str, Mapping[str, Any]] = OPTIONS,
        new_database: Callable[[str], str] | None = None,
        surround: Callable[[Deployment], None] | None = None,
        cell_conductors: bool = False,
    ) -> None:
        """``new_database`` gives the URL of a database of a name, of SQLite without it. ``surround`` starts the services around,
        and leaves services.conf and clouds.yaml in the folder; devcloud's do without it. ``cell_conductors``: each cell has a
        conductor of its own, and `CONDUCTORS` are super conductors only; else they do both."""
        self.directory = directory
        self._database = new_database or (lambda name: f"sqlite:///{directory}/{name}.sqlite")
        self._surround = surround or Deployment._start_devcloud
        self._cells, self._options = cells, options
        self.cell_conductors = {f"{cell}-conductor": cell for cell in cells} if cell_conductors else {}
        self.hosts = {host: cell for cell, hosts in cells.items() for host in hosts}
        self.rabbit = rabbit
        self._faults = directory / "faults.yaml"
        self.processes: dict[str, Process] = {}
        self._arguments: dict[str, tuple[str, ...]] = {}
        # Of those that are not ours.
        self._kinds: dict[str, type[Process]] = {}
        #: from here on processes run the package of this folder, instead of this one
        self.source: Path | None = None
        names = ("api", "scheduler", *CONDUCTORS, *self.cell_conductors, *self.hosts)
        api_port, *others = free_ports(1 + len(names))
        self.api_url = f"http://127.0.0.1:{api_port}"
        #: where each process serves its metrics
        self.metrics = {name: f"127.0.0.1:{port}" for name, port in zip(names, others, strict=True)}

    def start(self) -> None:
        self._surround(self)
        self._name_databases()
        self._make_databases()
        self._configure()
        self._start_control_plane()
        for name in self.hosts:
            self.start_role("compute", name)
        for process in self.processes.values():
            process.wait_ready()
        until(self._healthy, bool, "the API to answer")
        # A cell's conductor says it to the cloud's, and does not wait.
        until(self._unmapped, lambda left: not left, "the cells of hosts to be known")
        self._fill()

    def start_role(self, role: str, name: str, *arguments: str) -> Process:
        options = [f"--config-file={file}" for file in self.files_of(name)]
        return self._start(name, role, *options, *arguments)

    def add_host(self, host: str, cell: str) -> Process:
        """Another one, which the cloud does not know yet: its compute starts."""
        self.hosts[host] = cell
        self.metrics[host] = f"127.0.0.1:{free_ports(1)[0]}"
        self._configure_host(host, cell)
        return self.start_role("compute", host)

    def remove_host(self, host: str) -> None:
        """One that was added: its compute ends. The cloud still knows it."""
        process = self.processes.pop(host)
        process.terminate()
        process.wait_ended()
        del self.hosts[host], self.metrics[host]

    def start_console_proxy(self, port: int) -> None:
        """Ready when this returns. It has no configuration of the services around: it calls none of them."""
        (self.directory / "console-proxy.conf").write_text(f"[DEFAULT]\ntransport_url = {self.rabbit}/cloud\n")
        files = [self.directory / f"{name}.conf" for name in ("common", "console-proxy", "databases")]
        configured = [f"--config-file={file}" for file in files]
        process = self._start("console-proxy", "console-proxy", *configured, f"--bind=127.0.0.1:{port}")
        assert process.wait_ready().startswith("console-proxy ")

    def files_of(self, name: str) -> list[Path]:
        """The configuration of a process. Neither computes nor conductors of cells know the API database.

        Computes call the services around with an account of their own.
        """
        if name in self.cell_conductors:
            return [self.directory / "common.conf", self.directory / f"{name}.conf"]
        of_hosts = "services-compute.conf"
        # Before hosts had an account of their own, there was no such file.
        is_there = (self.directory / of_hosts).exists()
        services = of_hosts if name in self.hosts and is_there else "services.conf"
        own = [self.directory / file for file in (services, "common.conf", f"{name}.conf")]
        return own if name in self.hosts else [*own, self.directory / "databases.conf"]

    def hypervisor(self, _host: str) -> dict[str, dict[str, str]]:
        """More options of the host's compute process."""
        return {}

    def prefix(self, _name: str) -> Sequence[str]:
        """What the command of a process begins with."""
        return ()

    def stop(self) -> None:
        """Everything; all of it must end by itself. Whoever others call ends last."""
        statuses = {}
        try:
            for names in (
                {"api", "console-proxy", *self.hosts, *CONDUCTORS, *self.cell_conductors},
                {"scheduler", "devcloud"},
            ):
                group = [self.processes[name] for name in names if name in self.processes]
                for process in group:
                    process.terminate()
                for process in group:
                    statuses[process.name] = process.wait_ended()
                    del self.processes[process.name]
        finally:
            # If one did not end the others are not left behind.
            self.kill()
        assert set(statuses.values()) <= {0}, statuses

    def kill(self) -> None:
        """Everything at once."""
        while self.processes:
            self.processes.popitem()[1].kill()
        self.api_database.close()

    def manage(self, *arguments: str, exit_statuses: Sequence[int] = (0,), on: str = "") -> str:
        """What `causeway manage` writes. ``on``: the process beside which it runs, if that matters."""
        done = subprocess.run(
            [*self.prefix(on), *self._version(), CAUSEWAY, "manage", *arguments],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert done.returncode in exit_statuses, done.stderr
        return done.stdout

    def status(self) -> dict[str, tuple[str, str]]:
        """What `causeway manage status` says with a conductor's configuration: check -> (level, details)."""
        options = [f"--config-file={path}" for path in self.files_of(CONDUCTORS[0])]
        found = json.loads(self.manage("status", "--json", *options, exit_statuses=(0, 1, 2)))
        return {each["check"]: (each["level"], each["details"]) for each in found["checks"]}

    def wrong(self) -> dict[str, tuple[str, str]]:
        """What is not well in `status`. This cloud signs nothing unless its options say so, which is no wonder."""
        unsigned = {"signed messages", *(f"{cell}: signed orders" for cell in self._cells)}
        signs = "rpc_signatures" in self._options
        return {
            check: found
            for check, found in self.status().items()
            if found[0] != ("warning" if check in unsigned and not signs else "success")
        }

    # faults

    def fault(self, point: str, **rule: Any) -> None:
        self._faults.with_name("faults.yaml.hits").unlink(missing_ok=True)
        self._faults.write_text(yaml.safe_dump({point: {"times": 1, **rule}}))

    def no_fault(self) -> None:
        """Ends the delay of who is held up."""
        self._faults.write_text("{}")

    def hit(self, point: str) -> dict[str, Any]:
        """Waits until a point is reached: where, and with which move."""
        hits = self._faults.with_name("faults.yaml.hits")

        def look() -> dict[str, Any] | None:
            lines = hits.read_text().splitlines() if hits.exists() else []
            return next((hit for hit in map(json.loads, lines) if hit["point"] == point), None)

        found = until(look, bool, f"{point} to be reached")
        assert isinstance(found, dict)
        return found

    def measured(self, name: str) -> dict[str, float]:
        """What a process counted: 'metric{label="value",...}' -> its value."""
        lines = requests.get(f"http://{self.metrics[name]}/metrics", timeout=10).text.splitlines()
        return {key: float(value) for key, value in (line.rsplit(" ", 1) for line in lines if line[:1] != "#")}

    def settle(self) -> None:
        until(lambda: journal.unfinished(self.api_database), lambda moves: not moves, "all moves to end")

    # servers

    def connection(self, cloud: str) -> Any:
        loader = openstack.config.OpenStackConfig(
            config_files=[str(self.directory / "clouds.yaml")], vendor_files=[], secure_files=[], load_envvars=False
        )
        return openstack.connection.Connection(config=loader.get_one(cloud))

    def boot(self, **fields: Any) -> Any:
        return self.wait(self.create(self._image, **fields), "ACTIVE")

    def create(self, image: Any, **fields: Any) -> Any:
        """A server that is still to be built."""
        networks = [{"uuid": self._network}]
        return self.member.compute.create_server(
            name="server", flavor_id="small", image_id=getattr(image, "id", image), networks=networks, **fields
        )

    def show(self, server: Any) -> Any:
        return self.admin.compute.get_server(server.id)

    def wait(self, server: Any, *statuses: str) -> Any:
        found = until(
            lambda: self.show(server),
            lambda found: found.status in (*statuses, "ERROR") and found.task_state is None,
            f"server {server.id} to become {' or '.join(statuses)}",
        )
        assert found.status in statuses, f"{found.status}: {found.fault}"
        return found

    def delete_servers(self) -> None:
        """All of the user's, and waits until they are gone."""
        for server in self.member.compute.servers():
            self.member.compute.delete_server(server.id)
            self.member.compute.wait_for_delete(server, wait=60)

    def running_on(self, server: Any) -> list[str]:
        """The hosts on which a guest of the server runs: asked of the hosts' own files."""
        found = []
        for host in self.hosts:
            path = self.directory / "hosts" / host / "guests" / f"{server.id}.json"
            if path.exists() and json.loads(path.read_text())["power_state"] == 1:
                found.append(host)
        return found

    # making it

    def _name_databases(self) -> None:
        """They may be empty still."""
        #: of "api", "cell0" and each cell: their URLs
        self.databases = {name: self._database(name) for name in ("api", "cell0", *self._cells)}
        self._write("databases.conf", {"api_database": {"connection": self.databases["api"]}})
        self.api_database = Database(self.databases["api"], "the API")

    def _make_databases(self) -> None:
        databases, configured = self.databases, f"--config-file={self.directory}/databases.conf"
        self.manage("db", "sync", configured, "--cell0", databases["cell0"])
        for name in self._cells:
            urls = ("--transport-url", f"{self.rabbit}/{name}", "--database-connection", databases[name])
            self.manage("cell", "create", configured, "--name", name, *urls, *self._cell_options(name))

    def _cell_options(self, _name: str) -> Sequence[str]:
        """More for `causeway manage cell create`."""
        return ()

    def _configure(self) -> None:
        common = {
            group: {name: as_text(name, value) for name, value in each.items()} for group, each in self._options.items()
        }
        common["DEFAULT"]["state_path"] = str(self.directory)
        self._write("common.conf", common)
        cloud = {"transport_url": f"{self.rabbit}/cloud"}
        for name in ("api", "scheduler", *CONDUCTORS):
            super_only = {"conductor": {"role": "super"}} if self.cell_conductors and name in CONDUCTORS else {}
            self._write(f"{name}.conf", {"DEFAULT": {"host": name, **cloud}, **super_only, **self._metrics(name)})
        for host, cell in self.hosts.items():
            self._configure_host(host, cell)
        for name, cell in self.cell_conductors.items():
            conductor = {
                "DEFAULT": {"host": name, "transport_url": f"{self.rabbit}/{cell}"},
                "conductor": {"role": "cell"},
            }
            self._write(
                f"{name}.conf",
                {**conductor, "database": {"connection": self.databases[cell]}, **self._metrics(name)},
            )

    def _start_control_plane(self) -> None:
        """Its conductors are ready when this returns."""
        for name in (*CONDUCTORS, *self.cell_conductors):
            self.start_role("conductor", name)
        self.start_role("scheduler", "scheduler")
        self.start_role("api", "api", "--bind", self.api_url.removeprefix("http://"))
        for name in (*CONDUCTORS, *self.cell_conductors):
            self.processes[name].wait_ready()

    def _start_devcloud(self) -> None:
        services = self._start(
            "devcloud",
            *(
                "devcloud",
                "--state-dir",
                str(self.directory),
                "--port",
                str(free_ports(1)[0]),
                "--compute-url",
                f"{self.api_url}/v2.1",
            ),
            *(argument for host in self.hosts for argument in ("--host", host)),
        )
        services.wait_ready()

    def restart(self, name: str, *, prefix: Sequence[str] = ()) -> Process:
        """A new process in the place of one that has ended, with the same arguments; ``prefix``: what its command begins with."""
        command = [*self.prefix(name), *prefix, *self._version()]
        kind = self._kinds.get(name, Process)
        self.processes[name] = kind(self.directory, name, *self._arguments[name], prefix=command)
        return self.processes[name]

    def start_other(self, name: str, kind: type[Process], *arguments: str) -> Process:
        """One that is not ours."""
        self._kinds[name] = kind
        return self._start(name, *arguments)

    def _start(self, name: str, *arguments: str) -> Process:
        self._arguments[name] = arguments
        return self.restart(name)

    def _version(self) -> list[str]:
        return ["env", f"PYTHONPATH={self.source}"] if self.source is not None else []

    def _configure_host(self, host: str, cell: str) -> None:
        own = {"host": host, "transport_url": f"{self.rabbit}/{cell}", "compute_driver": self.compute_driver}
        more = {**self._metrics(host), **self.hypervisor(host)}
        self._write(f"{host}.conf", {**more, "DEFAULT": {**own, **more.get("DEFAULT", {})}})

    def _metrics(self, name: str) -> dict[str, dict[str, str]]:
        return {"metrics": {"enabled": "true", "bind": self.metrics[name]}}

    def _write(self, name: str, groups: dict[str, dict[str, str]]) -> None:
        lines = []
        for group, options in groups.items():
            lines += [f"[{group}]", *(f"{option} = {value}" for option, value in options.items())]
        (self.directory / name).write_text("\n".join(lines) + "\n")

    def _unmapped(self) -> set[str]:
        # Of databases of release 0.1.0, too.
        query = sa.text("SELECT host FROM host_mappings")
        with self.api_database.read() as connection:
            return self.hosts.keys() - set(connection.execute(query).scalars())

    def _healthy(self) -> bool:
        try:
            return requests.get(f"{self.api_url}/healthcheck", timeout=10).ok
        except requests.ConnectionError:
            return False

    def _fill(self) -> None:
        self.member, self.admin = self.connection("causeway"), self.connection("causeway-admin")
        for name, vcpus in (("small", 1), ("large", 2)):
            self.admin.compute.create_flavor(id=name, name=name, vcpus=vcpus, ram=128, disk=1)
        image = self._make_image()
        network = self.member.network.create_network(name="network")
        self.member.network.create_subnet(network_id=network.id, ip_version=4, cidr="10.0.0.0/24")
        self._image, self._network = image.id, network.id

    def _make_image(self) -> Any:
        return self.member.image.create_image(
            name="image", disk_format="raw", container_format="bare", data=b"disk".ljust(4096, b"\0")
        )
